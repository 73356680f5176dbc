"""What a solver may ask of data, wherever that is: in memory, on disk, or made anew in every pass."""

from aucmax.operators.blocks import BlockOperator
from aucmax.operators.memory import FeatureOperator, KernelOperator
from aucmax.operators.protocol import ALL, FLOPS_PER_BYTE, Operator

__all__ = ["ALL", "FLOPS_PER_BYTE", "BlockOperator", "FeatureOperator", "KernelOperator", "Operator"]
