"""Draw the README's picture of a run: the real terminal output of the README's first command, as SVG.

python docs/pictures/draw.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

COMMAND = "pytest --jev-embedded=sparrow --jev-suite=upstream:jevbench-mini"
WIDTH = 120
MOST = 20
"""Lines of progress and of violations that are kept of each; the rest is cut with a mark."""


def main() -> None:
    """Run the command in an empty folder and draw what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [sys.executable, "-m", *COMMAND.split(), "--color=yes", "-p", "no:randomly", "-q"],
            cwd=folder,
            env={**os.environ, "COLUMNS": str(WIDTH)},
            capture_output=True,
            text=True,
            check=False,
        )
    output = run.stdout.splitlines()
    heads = [i for i, line in enumerate(output) if re.search(r"=====.*(violations:|jevbench:)", line)]
    first, second = heads
    lines = [f"$ {COMMAND}", *output[: min(4, first)], "…", *output[first : first + MOST], "…", *output[second:]]
    console = Console(record=True, width=WIDTH, file=StringIO())
    for line in lines:
        console.print(Text.from_ansi(line))
    picture = Path(__file__).with_name("run.svg")
    picture.write_text(console.export_svg(title="pytest-jevbench"), encoding="utf-8")


if __name__ == "__main__":
    main()
