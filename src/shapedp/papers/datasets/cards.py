"""Origin, citation and licence of every data set, and how the files here differ from the published ones."""

from __future__ import annotations

from shapedp.papers.data import read_toml
from shapedp.papers.datasets.base import Card

CARDS = {name: Card(name, **texts) for name, texts in read_toml("shapedp.papers.datasets", "cards.toml").items()}
