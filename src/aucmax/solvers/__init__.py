"""Solvers: they see an operator and a loss, never a matrix or an estimator."""
