"""Tables from files and frames: what is read, and said where it cannot be."""
