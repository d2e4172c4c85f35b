"""Tables: csv, parquet and feather files, frames, Arrow data and Dask collections, read in blocks of rows.

A cell that is no number counts as missing (NaN), and each cell is read by itself.
"""

from shapedp.tables.blocks import Columns, InMemory, Table
from shapedp.tables.partitions import Partitioned

__all__ = ["Columns", "InMemory", "Partitioned", "Table"]
