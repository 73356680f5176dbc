"""Models of tables, from files and frames, with columns of any kind and missing values."""

from aucmax.reading.frames import TableError
from aucmax.reading.read import read_table, table_batches
from aucmax.tables.check import check_table
from aucmax.tables.check_result import TableCheck
from aucmax.tables.decisions import with_threshold
from aucmax.tables.fit_table_file import fit_table, plan_table
from aucmax.tables.model import TableModel
from aucmax.tables.predict_table_file import predict_table
from aucmax.tables.table_features import TableFeatures

__all__ = [
    "TableCheck",
    "TableError",
    "TableFeatures",
    "TableModel",
    "check_table",
    "fit_table",
    "plan_table",
    "predict_table",
    "read_table",
    "table_batches",
    "with_threshold",
]
