"""Losses over all pairs of a positive and a negative row, as functions of their scores."""

from aucmax.pairs.squared_hinge import Array, Floats, Indices, Mask, PairLoss, PairPoint, ordered_share

__all__ = ["Array", "Floats", "Indices", "Mask", "PairLoss", "PairPoint", "ordered_share"]
