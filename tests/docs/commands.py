"""The commands of a page, run one after the other.

python tests/docs/commands.py README.md     # with the interpreter's own environment, in an empty folder
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ (.*?(?:\\\n.*?)*)(?:\s+# exit code (\d+))?$", re.MULTILINE)


def words_of(command: str) -> list[str]:
    """The words of a command without pipes, files or other work for a shell; none where it has any."""
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    return [] if any(set(word) <= set("();<>|&") for word in words) or re.search(r"[$`*?~]", command) else words


def run(block: str, shapedp: Callable[[Sequence[str]], int] | None = None) -> None:
    """The lines behind `$`; each must end with the exit code it states, or 0. Installing is skipped: it is done.

    Plain calls of `shapedp` are handed to that function where one is given; all else is run by a shell.
    """
    found = COMMAND.findall(block)
    if not found:
        raise AssertionError(f"no command in {block!r}")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command, code in found:
        if command.startswith("pip install"):
            continue
        words = words_of(command) if shapedp else []
        if shapedp and words[:1] == ["shapedp"]:
            with warnings.catch_warnings():
                warnings.simplefilter("default")
                ended, said = shapedp(words[1:]), ""
        else:
            done = subprocess.run(
                ["bash", "-c", command], capture_output=True, text=True, timeout=240, env={**os.environ, "PATH": path}
            )
            ended, said = done.returncode, f"{done.stdout}{done.stderr}"
        if ended != int(code or 0):
            raise AssertionError(f"{command}\nexit code {ended}\n{said}")


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text("utf-8")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        blocks = [source for kind, source in BLOCK.findall(text) if kind == "console"]
        for block in blocks:
            run(block)
        made = sorted(path.name for path in Path(folder).iterdir())
    print(f"{sys.argv[1]}: {len(blocks)} blocks of commands in {time.perf_counter() - start:.1f} s: {', '.join(made)}")
