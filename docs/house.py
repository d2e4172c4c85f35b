"""Draw the house: the packages of the library, each on those it may use, with their code lines.

    python docs/house.py            # writes docs/house.svg

Floors come from the import contract in pyproject.toml. Code lines are those without docstrings, comments and blanks.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "shapedp"
_QUIET = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_OWNERS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(path: Path) -> int:
    """Lines that hold code."""
    text = path.read_text("utf-8")
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _QUIET:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _OWNERS) and node.body and ast.get_docstring(node, clean=False) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def floors() -> list[list[str]]:
    """The packages of each floor, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(contract for contract in contracts if contract["id"] == "layers")["layers"]
    found = [re.findall(r"\w+", layer) for layer in layers]
    return [[name for name in names if (SOURCE / name).is_dir()] for names in found]


def drawn() -> str:
    """The house as SVG."""
    rows, y, total = [], 10, 0
    for names in filter(None, floors()):
        width = 680 / len(names)
        for at, name in enumerate(names):
            lines = sum(code_lines(path) for path in (SOURCE / name).rglob("*.py"))
            total += lines
            x = 10 + at * width
            rows.append(
                f'<rect x="{x:.0f}" y="{y}" width="{width - 6:.0f}" height="28" rx="4" fill="#00897b" '
                f'fill-opacity="0.15" stroke="#00897b"/><text x="{x + 10:.0f}" y="{y + 19}">{name}</text>'
                f'<text x="{x + width - 16:.0f}" y="{y + 19}" text-anchor="end">{lines:,}</text>'
            )
        y += 34
    rows.append(f'<text x="10" y="{y + 14}">A floor uses only floors below it. {total:,} lines of code in all.</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 {y + 26}" width="700" font-family="sans-serif" '
        f'font-size="14" fill="#777">{"".join(rows)}</svg>\n'
    )


if __name__ == "__main__":
    (ROOT / "docs" / "house.svg").write_text(drawn(), "utf-8")
