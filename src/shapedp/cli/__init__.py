"""The command line: parse, call, print."""

from shapedp.cli.main import main

__all__ = ["main"]
