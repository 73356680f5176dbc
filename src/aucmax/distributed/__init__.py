"""Rows that Dask workers hold, and products with them: the same solve where the data is on a cluster.

Partitions are checked where they are. Kernel values are made of them there in *pieces*, about one for
each thread of the cluster (a piece is a task in every pass, and tasks have a price), and stay. Between
driver and workers go coefficients (r numbers a column), scores and their gradients (a number a row and
column), and a sample of rows for landmarks and preconditioners.

Every task carries the vectors it needs, and everything held is the result of a task: what is lost with
a worker is made anew by Dask from the source, and the solve does not notice.
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
