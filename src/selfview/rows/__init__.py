"""Rows: whatever users pass becomes float32 batches, in memory or on disk."""
