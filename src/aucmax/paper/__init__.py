"""The methods of "Scalable Nonlinear AUC Maximization Methods" (Khalid, Ray and Chitsaz, 2018)."""

from aucmax.paper.methods import METHODS, Method

__all__ = ["METHODS", "Method"]
