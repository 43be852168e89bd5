"""Freezing suites: from a folder of cases to a plan and a manifest, and from a suite to a sample of it.

Files are written beside their final names and moved into place last, the manifest after the rest: a folder that was
half written does not verify.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import __version__
from .case import Case, domains, read_cases
from .errors import SuiteError
from .lines import decode, read_bytes
from .plan import Row
from .planning import (
    STANDARD,
    Planned,
    compressed,
    count_requests,
    full_plan,
    plan_text,
    reduced,
    sample,
    standard_plan,
)
from .relations import Trial, select
from .rewrites import Bank, read_rewrites
from .suite import PLAN_FILE, Suite, load_suite, read_suite

DATA = (".jsonl", ".jsonl.gz")


def freeze(folder: Path, *, seed: int = 0, audited_only: bool = False) -> Suite:
    """Build the standard plan of the cases in a folder and write `tests.jsonl.gz` and `manifest.json`.

    `cases.jsonl` is needed, `rewrites.jsonl` used when present; name, version, edition, description and min_n of an
    existing manifest are kept. Returns the suite as it is read back. Raises CaseError or SuiteError.
    """
    cases = read_cases(folder / "cases.jsonl")
    rewrites = folder / "rewrites.jsonl"
    bank = Bank(read_rewrites(rewrites) if rewrites.exists() else (), audited_only=audited_only)
    everything = full_plan(cases, select(), bank, seed=seed)
    standard = standard_plan(everything, cases)
    planned = [Planned(trial, reduced(trial, _case(cases, trial), bank, seed)) for trial in standard]
    relations = [relation.name for relation in select() if any(t.relation == relation.name for t in standard)]
    text = plan_text(planned, cases, seed=seed, draws=1, relations=relations, selection=STANDARD)
    plan = _described(standard, cases, seed, STANDARD, relations) | {"chosen_from_trials": len(everything)}
    manifest = {
        **_kept(folder),
        "cases": len(cases),
        "questions": sum(len(case.questions) for case in cases),
        "domains": _counts(cases),
        "plan": plan,
    }
    _write(folder, text, manifest)
    return read_suite(folder)


def freeze_sample(folder: Path, out: Path, per_domain: int) -> Suite:
    """Draw a sample of a frozen suite: every relation on `per_domain` cases of each domain. Raises SuiteError."""
    suite = read_suite(folder)
    cases = list(suite.plan.cases.values())
    texts = {
        (row.relation, row.case, row.key, *row.place): row.line.decode()
        for test in suite.plan.tests
        for row in test.rows
        if isinstance(row, Row)
    }
    standard = [trial for test in suite.plan.tests for trial in test.trials()]
    chosen = sample(standard, cases, per_domain)
    relations = sorted({trial.relation for trial in chosen})
    selection = f"each relation on {per_domain} cases per domain"
    header = {
        "format": 1,
        "seed": suite.plan.header.get("seed", 0),
        "trials": 1,
        "relations": relations,
        "cases": [case.id for case in cases],
        "selection": selection,
    }
    lines = [json.dumps(header, ensure_ascii=False)]
    lines += [texts[trial.relation, trial.case, trial.key, trial.v, trial.t] for trial in chosen]
    out.mkdir(parents=True, exist_ok=True)
    manifest = {
        **_kept(out),
        "base": suite.name,
        "per_domain": per_domain,
        "base_files": {name: digest for name, digest in suite.digests.items() if "/" not in name},
        "plan": _described(chosen, cases, suite.plan.header.get("seed", 0), selection, relations)
        | {"drawn_from": f"{suite.name} v{suite.version}"},
    }
    _write(out, "\n".join(lines) + "\n", manifest)
    return read_suite(out)


def export(name: str, out: Path) -> Suite:
    """Write a suite to a folder that needs no base. Raises SuiteError, also when the folder is not empty."""
    suite = load_suite(name)
    if out.exists() and any(out.iterdir()):
        raise SuiteError("the folder is not empty", str(out), hint="Choose a new one.")
    out.mkdir(parents=True, exist_ok=True)
    source = decode(read_bytes(suite.folder / "manifest.json", SuiteError), str(suite.folder), SuiteError)
    base = suite.cases_folder
    for path in sorted(base.iterdir()):
        if path.name.endswith(DATA) and path.name != PLAN_FILE:
            shutil.copyfile(path, out / path.name)
    cases = list(suite.plan.cases.values())
    manifest = {
        **{key: value for key, value in source.items() if key not in ("base", "base_files", "per_domain", "files")},
        "edition": suite.edition,
        "min_n": suite.min_n,
        "cases": len(cases),
        "questions": sum(len(case.questions) for case in cases),
        "domains": _counts(cases),
    }
    _write(out, read_bytes(suite.folder / PLAN_FILE, SuiteError).decode(), manifest)
    return read_suite(out)


def _case(cases: Sequence[Case], trial: Trial) -> Case:
    return next(case for case in cases if case.id == trial.case)


def _counts(cases: Sequence[Case]) -> dict[str, int]:
    return {domain: sum(case.domain == domain for case in cases) for domain in domains(cases)}


def _kept(folder: Path) -> dict[str, Any]:
    """Return what a person wrote in an existing manifest; a new one is named after its folder."""
    path = folder / "manifest.json"
    old = decode(read_bytes(path, SuiteError), str(path), SuiteError) if path.exists() else {}
    kept = {key: old[key] for key in ("name", "version", "edition", "description", "min_n", "rewrites") if key in old}
    return {"name": folder.resolve().name, "version": "1", **kept}


def _described(
    trials: Sequence[Trial], cases: Sequence[Case], seed: int, selection: str, relations: Sequence[str]
) -> dict[str, Any]:
    return {
        "file": PLAN_FILE,
        "selection": selection,
        "trials": len(trials),
        "tests": len({(trial.relation, trial.case, trial.key) for trial in trials}),
        "relations": len(relations),
        "seed": seed,
        "trials_per_target": 1,
        "requests": count_requests(trials, cases),
    }


def _write(folder: Path, plan: str, manifest: Mapping[str, Any]) -> None:
    _replace(folder / PLAN_FILE, compressed(plan))
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.name.endswith(DATA)
    }
    whole = {**manifest, "files": files, "built_with": f"pytest-jevbench {__version__}"}
    _replace(folder / "manifest.json", (json.dumps(whole, indent=1, ensure_ascii=False) + "\n").encode())


def _replace(path: Path, data: bytes) -> None:
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as broken:
        raise SuiteError(f"the file cannot be written ({broken.strerror})", str(path)) from broken
