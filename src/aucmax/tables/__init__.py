"""Models of tables with numbers, booleans, categories and missing values, from files and frames."""

from aucmax.reading.frames import TableError
from aucmax.reading.read import read_table, table_batches
from aucmax.tables.check import TableCheck, check_table
from aucmax.tables.fit_table_file import fit_table, plan_table
from aucmax.tables.model import TableModel
from aucmax.tables.predict_table_file import predict_table

__all__ = [
    "TableCheck",
    "TableError",
    "TableModel",
    "check_table",
    "fit_table",
    "plan_table",
    "predict_table",
    "read_table",
    "table_batches",
]
