"""Tables and pictures of results. Reads numbers, never trains, never imports torch."""
