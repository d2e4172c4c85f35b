"""The same fits on Dask arrays and data frames: in threads, or on the cluster of the current client."""

from shapedp.scale.partitions import Partitioned, fit

__all__ = ["Partitioned", "fit"]
