"""Checksums of the files that the loaders read: sha256 of the file and, where it is packed, of its content."""

from __future__ import annotations

from dataclasses import dataclass

from shapedp.papers.data import read_toml


@dataclass(frozen=True)
class Stored:
    """What a file must be: its sha256, and the size and sha256 of what it unpacks to."""

    sha256: str
    size: int
    content_sha256: str

    def __post_init__(self) -> None:
        if len(self.sha256) != 64 or len(self.content_sha256) != 64 or not self.size > 0:
            raise ValueError(f"a stored file needs two sha256 sums and a size, got {self}")


FILES = {name: Stored(*sums) for name, sums in read_toml("shapedp.papers.datasets", "checksums.toml").items()}
