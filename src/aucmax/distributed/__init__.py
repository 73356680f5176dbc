"""Rows that Dask workers hold, and products with them: the same solve where the data is on a cluster.

Partitions are checked where they are. Kernel values are computed there in *pieces*, about one for each
thread of the cluster (a piece is a task in every pass, and tasks have a price), and stay there. Between
driver and workers go coefficients (r numbers per problem), scores and their gradients (one number per
row and problem), and a sample of rows for landmarks and preconditioners.

Every task carries the vectors it needs, and everything held is the result of a task: Dask recomputes
from the source what is lost with a worker, and the solve continues.
"""

from aucmax.distributed.client import connect
from aucmax.distributed.dask_operator import DaskOperator, driver_bytes, traffic_bytes
from aucmax.distributed.dask_rows import DaskRows, lazily, take_over

__all__ = [
    "DaskOperator",
    "DaskRows",
    "connect",
    "driver_bytes",
    "lazily",
    "take_over",
    "traffic_bytes",
]
