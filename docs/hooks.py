"""What the site adds to the pages of the repository: the menu, and the full reference of every package."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

MENU = {
    "Start here": ("index.md", "tutorials/1-choose-a-mechanism.md", "glossary.md", "migrating.md", "comparison.md"),
    "Publish": (
        "tutorials/7-publish-a-table.md",
        "tutorials/9-survey-with-several-rows.md",
        "tables.md",
        "sql.md",
        "tutorials/2-release-a-table.md",
        "families.md",
        "shaped-noise.md",
        "radial.md",
        "tensors.md",
        "workloads.md",
        "selection.md",
        "choosing-parameters.md",
    ),
    "Fit": (
        "tutorials/3-regression-on-a-large-file.md",
        "regression.md",
        "classification.md",
        "coordinate-descent.md",
        "pca.md",
        "mixing.md",
        "pipelines.md",
        "larger-than-memory.md",
    ),
    "Train": (
        "tutorials/4-train-a-network.md",
        "deep-learning.md",
        "fine-tuning.md",
        "geodp.md",
        "training-studies.md",
        "membership.md",
    ),
    "Check and audit": (
        "tutorials/5-audit-your-mechanism.md",
        "audit.md",
        "report.md",
        "write-your-own-checker.md",
        "threat-model.md",
        "known-issues.md",
    ),
    "Budget": ("tutorials/8-three-weeks-one-budget.md", "tutorials/6-keep-a-budget.md", "accounting.md", "ledger.md"),
    "Papers": (
        "papers/product-noise.md",
        "papers/inid-noise.md",
        "papers/tensor-noise.md",
        "papers/gaussian-mixing.md",
        "papers/geodp.md",
        "claims.md",
        "reproductions.md",
        "why-product-noise-fails.md",
        "datasets.md",
    ),
    "Theory": ("notation.md", "special-functions.md"),
    "Reference": ("api.md", "benchmarks.md"),
    "Develop": ("architecture.md", "adding-a-mechanism.md", "decisions.md"),
}


def on_config(config: Any) -> Any:
    """Group the pages; every page has a place."""
    docs = Path(config.docs_dir)
    found = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    listed = [page for pages in MENU.values() for page in pages]
    if found != set(listed) or len(listed) != len(found):
        raise ValueError(f"docs/hooks.py must list every page once: {sorted(found.symmetric_difference(listed))}")
    config.nav = [{title: list(pages)} for title, pages in MENU.items()]
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the full reference of a package under its list of names."""
    if page.file.src_uri != "api.md":
        return markdown
    return re.sub(r"(?ms)^## (shapedp\.\w+)\n(.*?)(?=^## |<!-- end)", r"## \1\n\2\n::: \1\n\n", markdown)
