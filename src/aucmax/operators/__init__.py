"""Rows times features as a solver sees them: in memory, on disk, or recomputed in every pass."""

from aucmax.operators.blocks import BlockOperator
from aucmax.operators.in_memory import FeatureOperator, KernelOperator
from aucmax.operators.interface import ALL, FLOPS_PER_BYTE, Operator

__all__ = ["ALL", "FLOPS_PER_BYTE", "BlockOperator", "FeatureOperator", "KernelOperator", "Operator"]
