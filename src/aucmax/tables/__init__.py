"""Models of tables as they come: numbers, yes and no, categories, holes; files and frames."""

from __future__ import annotations

from aucmax.tables.frames import TableError
from aucmax.tables.model import TableModel, fit_table
from aucmax.tables.read import read_table, table_batches

__all__ = ["TableError", "TableModel", "fit_table", "read_table", "table_batches"]
