"""Read tables from files and frames, and explain what cannot be read."""
