"""shapedp: noise shaped to your query, with a guarantee you can check."""

from shapedp._version import __version__

__all__ = ["__version__"]
