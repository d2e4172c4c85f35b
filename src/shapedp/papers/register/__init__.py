"""The register of published statements, each with its computed verdict, and the reproduction harness."""

from shapedp.papers.register.harness import Item, Table, find_item, reproduce
from shapedp.papers.register.register import CLAIMS, Claim, Finding, check, verify_all

__all__ = ["CLAIMS", "Claim", "Finding", "Item", "Table", "check", "find_item", "reproduce", "verify_all"]
