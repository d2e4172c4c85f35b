"""The register of published statements, each with its computed verdict, and the reproduction harness.

`CLAIMS` holds every claim by its name, `check` computes one anew; `Item` and `Table` are what experiments are made of.
"""

from shapedp.papers.register.harness import Item, Table, find_item, reproduce
from shapedp.papers.register.register import CLAIMS, Claim, Finding, check, verify_all

__all__ = ["CLAIMS", "Claim", "Finding", "Item", "Table", "check", "find_item", "reproduce", "verify_all"]
