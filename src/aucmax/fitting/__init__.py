"""What every fit needs between its rows and its solver: folds and checkpoints."""
