"""Saving: atomic files and locks, checkpoints, the model file, export to other formats."""
