"""Products with the feature matrix, which is in memory, on disk, or recomputed in every pass."""
