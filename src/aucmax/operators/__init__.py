"""Rows times features as a solver sees them: in memory, on disk, or recomputed in every pass."""
