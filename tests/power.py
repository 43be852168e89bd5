"""Which relations see which defects: measured on the case of the suite `examples`, written as `docs/power.md`.

python tests/power.py > docs/power.md
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from defects import DEFECTS, broken
from oracle import Oracle
from pytest_jevbench.cache import MemoryStore
from pytest_jevbench.client import Client
from pytest_jevbench.evidence import gather
from pytest_jevbench.judge import TOLERANCE, judge
from pytest_jevbench.model import from_callable
from pytest_jevbench.own import own_plan
from pytest_jevbench.plan import Plan
from pytest_jevbench.relations import select
from pytest_jevbench.rewrites import Bank, read_rewrites
from pytest_jevbench.suite import load_suite

Rates = Mapping[str, tuple[int, int]]
"""Violated and judged tests by relation."""


def examples() -> tuple[Plan, Bank]:
    """Return every test of every relation on the case of `examples`, and its bank."""
    suite = load_suite("examples")
    bank = Bank(read_rewrites(suite.folder / "rewrites.jsonl"))
    plan = own_plan(list(suite.plan.cases.values()), bank)
    return plan.select(select()), bank


def violations(plan: Plan, ask: Callable[[Any, dict[str, Any]], Any]) -> Rates:
    """Judge every test of a plan on a model; a test counts as violated when any of its variants is."""
    client = Client([from_callable(ask)], MemoryStore())
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for test in plan.tests:
        judged = judge(test.relation, gather(client, test))
        if judged is not None:
            violated, tests = found[test.relation.name]
            found[test.relation.name] = (violated + judged.verdict.violated, tests + 1)
    return dict(found)


def measure() -> dict[str, Rates]:
    """Measure every defect; the oracle without any stands under the empty name."""
    plan, bank = examples()
    oracle = Oracle(plan.cases.values(), bank)
    return {"": violations(plan, oracle)} | {
        defect.name: violations(plan, broken(oracle, defect)) for defect in DEFECTS
    }


def failed(rates: Rates) -> list[str]:
    """Return the relations of which at least one test is violated."""
    return [name for name, (violated, _) in rates.items() if violated]


HEAD = """# Power: which relations see which defects

<!-- Generated: python tests/power.py > docs/power.md -->

A coherent model (`tests/oracle.py`) answers every request from one joint distribution and violates nothing. Each
defect below is put alone on top of it (`tests/defects.py`), and every test of every relation is judged on the case
of the suite `examples`: {tests} tests at tolerance {tolerance}. Defects are caricatures, large enough to be seen on a
single case; the table says what a relation can see, not how often models have the defect.
"""


def markdown(found: Mapping[str, Rates]) -> str:
    """Write the page."""
    relations = list(found[""])
    tests = sum(judged for _, judged in found[""].values())
    lines = [HEAD.format(tests=tests, tolerance=TOLERANCE), "## Defects", ""]
    lines += ["| | defect | the model | relations that fail |", "|---:|---|---|---:|"]
    for i, defect in enumerate(DEFECTS, 1):
        lines.append(f"| {i} | {defect.name} | {defect.what} | {len(failed(found[defect.name]))} |")
    lines += ["", "## Relations", ""]
    lines += [
        "● at least one test violated; ◉ one for which the defect was planted. The last column counts defects.",
        "",
    ]
    numbers = [str(i) for i in range(1, len(DEFECTS) + 1)]
    lines += [f"| relation | {' | '.join(numbers)} | |", f"|---|{':-:|' * len(numbers)}---:|"]
    for relation in relations:
        seen = [relation in failed(found[defect.name]) for defect in DEFECTS]
        cells = [
            "" if not each else "◉" if relation in defect.planted else "●"
            for each, defect in zip(seen, DEFECTS, strict=True)
        ]
        lines.append(f"| `{relation}` | {' | '.join(cells)} | {sum(seen)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(markdown(measure()))
