"""Compare our core with the package `jevbench` 0.1.0 on its suites, number by number, with the same answers.

    python benchmarks/parity.py [--suites NAME ...] [--models NAME ...]

Prints one line a suite and model; exits 1, and says what, when anything differs. The time of the model itself is
in neither column of seconds. What is compared, and how closely, is in `tests/peer.py`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peer import Comparison

HEAD = (
    "suite",
    "model",
    "overall ours/theirs",
    "refused",
    "incomplete",
    "outcomes",
    "max deviation diff",
    "verdict diffs (on tolerance)",
    "flip diffs (on a tie)",
    "max score diff",
    "interval diff",
    "distinct ours/theirs",
    "seconds ours/theirs",
    "",
)


def main() -> int:
    """Run the comparison; return the exit code."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from peer import DISTINCT, MODELS, run_both

    parser = argparse.ArgumentParser(description="Compare our core with jevbench 0.1.0, fed the same answers.")
    parser.add_argument("--suites", nargs="+", choices=list(DISTINCT), default=list(DISTINCT))
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    chosen = parser.parse_args()
    found = []
    for suite in chosen.suites:
        for model in chosen.models:
            print(f"{suite}, {model} ...", file=sys.stderr, flush=True)
            found.append(run_both(suite, model))
    _print_table([HEAD, *(_row(comparison) for comparison in found)])
    _print_details(found)
    return 1 if any(comparison.problems for comparison in found) else 0


def _row(found: Comparison) -> tuple[str, ...]:
    return (
        found.suite,
        found.model,
        " / ".join("-" if overall is None else f"{100 * overall:.2f}" for overall in found.overall),
        str(found.refused),
        str(found.incomplete),
        f"{found.outcomes:,}",
        f"{found.deviation:.1e}",
        f"{found.verdicts} ({len(found.on_tolerance)})",
        f"{found.flips} ({len(found.on_tie)})",
        f"{found.scores:.1e}",
        f"{found.interval:.1e}",
        "{:,} / {:,}".format(*found.distinct),
        "{:.2f} / {:.2f}".format(*found.seconds),
        "OFF" if found.problems else "ok",
    )


def _print_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def _print_details(found: list[Comparison], shown: int = 20) -> None:
    for comparison in found:
        name = f"{comparison.suite}, {comparison.model}"
        for title, lines in (
            ("verdicts on the tolerance", comparison.on_tolerance),
            ("flips on a tie", comparison.on_tie),
            ("OFF", comparison.problems),
        ):
            if lines:
                print(f"\n{name}: {len(lines)} {title}")
                print("\n".join(f"  {line}" for line in lines[:shown]))
                if len(lines) > shown:
                    print(f"  ... and {len(lines) - shown} more")


if __name__ == "__main__":
    sys.exit(main())
