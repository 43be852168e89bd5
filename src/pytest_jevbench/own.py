"""A plan made of a user's own cases: every trial of every relation that applies, built from a seed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .case import Case, parse_cases
from .errors import CaseError
from .lines import read_bytes
from .plan import Plan, Test, own_name
from .planning import trials
from .relations import CATALOGUE, Trial, select
from .rewrites import Bank, read_rewrites
from .suite import DEFAULT_MIN_N


@dataclass(frozen=True, slots=True)
class OwnCases:
    """Own cases with their plan. All variants and draws of a test are judged together."""

    name: str
    file: str
    sha256: str
    seed: int
    draws: int
    plan: Plan
    min_n: int = DEFAULT_MIN_N


def read_own(
    path: Path,
    *,
    shown: str = "",
    seed: int = 0,
    draws: int = 1,
    rewrites: Path | None = None,
    audited_only: bool = False,
) -> OwnCases:
    """Read a case file and build its plan; `shown` is how the card names the file (default: its path).

    Raises CaseError, and SuiteError for the bank.
    """
    data = read_bytes(path, CaseError)
    bank = Bank(read_rewrites(rewrites) if rewrites else (), audited_only=audited_only)
    plan = own_plan(parse_cases(path, data), bank, seed=seed, draws=draws)
    return OwnCases(own_name(path.name), shown or str(path), hashlib.sha256(data).hexdigest(), seed, draws, plan)


def own_plan(cases: Sequence[Case], bank: Bank, *, seed: int = 0, draws: int = 1) -> Plan:
    """Build every test of some cases, diagnostics included, in the order of relation, case and target."""
    grouped: dict[tuple[str, str, str], list[Trial]] = {}
    by_id = {case.id: case for case in cases}
    everything = select(relations=["all"])
    for case in cases:
        for trial in trials(case, everything, bank, seed=seed, draws=draws):
            grouped.setdefault((trial.relation, trial.case, trial.key), []).append(trial)
    order = {relation.name: i for i, relation in enumerate(everything)}
    tests = [Test(CATALOGUE[name], by_id[case], key, tuple(rows)) for (name, case, key), rows in grouped.items()]
    tests.sort(key=lambda test: order[test.relation.name])
    return Plan({"seed": seed, "trials": draws}, by_id, tuple(tests))
