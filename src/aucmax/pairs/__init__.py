"""Losses over all pairs of a positive and a negative row, as functions of their scores."""

from aucmax.pairs.squared_hinge import Floats, Indices, PairLoss, PairPoint, ordered_share

__all__ = ["Floats", "Indices", "PairLoss", "PairPoint", "ordered_share"]
