"""Making plans from cases alone: every trial, one test a relation and case, a sample, and how they are written.

Nothing here draws a random number of its own: choices rest on the seeded generators of the trials and on SHA-256.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .case import Case, domains
from .plan import FORMAT
from .relations import CATALOGUE, Relation, Trial
from .relations.base import VARIANT
from .relations.build import SEPARATOR, Site, generator
from .rewrites import Bank
from .wire import Batch, Question

STANDARD = "standard: one test per relation per case, one variant per test"
SAMPLE_SALT = "mini"


@dataclass(frozen=True, slots=True)
class Planned:
    """A trial of a plan with its reduced form: the same law on the targets alone, None where there is none."""

    trial: Trial
    reduced: Trial | None = None


def make_trial(
    relation: Relation, case: Case, key: str, bank: Bank, *, v: int = 0, t: int = 0, seed: int = 0
) -> Trial | None:
    """Build one trial, or None where the relation does not apply to this target and variant.

    The generator is seeded by (seed, case id, unit, target, draw) and, from the second variant on, the variant:
    members of a unit make the same requests.
    """
    parts = [seed, case.id, relation.unit or relation.name, key, t, *([f"v{v}"] if v else [])]
    built = relation.build(Site(case, key, bank, v, generator(*parts)))
    if built is None:
        return None
    requests: Mapping[str, Any] = built.requests if built.labelled else {VARIANT: built.requests}
    return Trial(relation.name, case.id, key, v, t, tuple(built.targets) or (key,), requests, built.params)


def trials(
    case: Case, relations: Iterable[Relation], bank: Bank, *, seed: int = 0, draws: int = 1
) -> Iterator[Trial]:
    """Yield every trial of a case: relation, target, variant and draw in order."""
    for relation in relations:
        for key in case.questions:
            for v in range(relation.variants(Site(case, key, bank))):
                for t in range(draws if relation.draws else 1):
                    trial = make_trial(relation, case, key, bank, v=v, t=t, seed=seed)
                    if trial is not None:
                        yield trial


def full_plan(
    cases: Iterable[Case], relations: Iterable[Relation], bank: Bank, *, seed: int = 0, draws: int = 1
) -> list[Trial]:
    """Return every trial of every case, in file order."""
    chosen = list(relations)
    return [trial for case in cases for trial in trials(case, chosen, bank, seed=seed, draws=draws)]


def reduced(trial: Trial, case: Case, bank: Bank, seed: int) -> Trial | None:
    """Rebuild a trial on its targets alone, with the same draw.

    None for laws about the batch and for diagnostics, when the batch is no larger, or when it does not apply.
    """
    relation = CATALOGUE[trial.relation]
    if relation.dimension in ("BAT", "DIAG") or len(trial.targets) == len(case.questions):
        return None
    small = replace(case, questions={key: q for key, q in case.questions.items() if key in trial.targets})
    if trial.v >= relation.variants(Site(small, trial.key, bank)):
        return None
    return make_trial(relation, small, trial.key, bank, v=trial.v, t=trial.t, seed=seed)


# The standard plan and its sample


def _digest(*parts: str) -> str:
    return hashlib.sha256(SEPARATOR.join(parts).encode(errors="surrogatepass")).hexdigest()


def units(relations: Iterable[Relation]) -> dict[str, list[Relation]]:
    """Group relations by the unit that shares their requests."""
    found: dict[str, list[Relation]] = defaultdict(list)
    for relation in relations:
        found[relation.unit or relation.name].append(relation)
    return found


def standard_plan(everything: Sequence[Trial], cases: Sequence[Case]) -> list[Trial]:
    """Choose one test per relation and case with one variant, first draw only; targets and variants in turn.

    The members of a unit take the same question where they can, so that they share their requests.
    """
    found: dict[tuple[str, str], dict[str, list[Trial]]] = defaultdict(lambda: defaultdict(list))
    for trial in everything:
        if trial.t == 0:
            found[trial.relation, trial.case][trial.key].append(trial)
    places = {domain: k for k, domain in enumerate(sorted(domains(cases)))}
    chosen: set[tuple[str, str, str, int]] = set()
    by_unit = units(CATALOGUE[name] for name in dict.fromkeys(trial.relation for trial in everything))
    for unit in sorted(by_unit):
        used: dict[str, Counter[str]] = defaultdict(Counter)
        turns: Counter[str] = Counter()
        for case in sorted(cases, key=lambda each: _digest(unit, "case", each.id)):
            members = {r.name: found[r.name, case.id] for r in by_unit[unit] if (r.name, case.id) in found}
            if not members:
                continue
            turn = turns[case.domain] + places[case.domain]
            turns[case.domain] += 1
            targets = _targets(members, unit, case.id, used[case.domain])
            used[case.domain].update(set(targets.values()))
            for name, key in targets.items():
                variants = members[name][key]
                chosen.add((name, case.id, key, variants[turn % len(variants)].v))
    return [each for each in everything if each.t == 0 and (each.relation, each.case, each.key, each.v) in chosen]


def _targets(
    members: Mapping[str, Mapping[str, list[Trial]]], unit: str, case: str, used: Counter[str]
) -> dict[str, str]:
    """Take the least used question that all relations of the unit share, else each relation's own."""

    def least(keys: Iterable[str]) -> str:
        return min(keys, key=lambda key: (used[key], _digest(unit, case, key)))

    shared = set.intersection(*(set(keys) for keys in members.values()))
    if shared:
        return dict.fromkeys(members, least(shared))
    return {name: least(keys) for name, keys in members.items()}


def sample(standard: Sequence[Trial], cases: Sequence[Case], per_domain: int) -> list[Trial]:
    """Spread the units over the cases of each domain, `per_domain` cases a unit, as evenly as requests allow."""
    rows: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in standard:
        relation = CATALOGUE[trial.relation]
        rows[relation.unit or relation.name, trial.case].append(trial)
    by_unit = units(CATALOGUE[name] for name in dict.fromkeys(trial.relation for trial in standard))
    placed: Counter[str] = Counter()
    labels: Counter[str] = Counter()
    kept: list[Trial] = []
    for unit in sorted(by_unit, key=lambda name: (-len(by_unit[name]), name)):
        for domain in domains(cases):
            candidates = [case.id for case in cases if case.domain == domain and (unit, case.id) in rows]
            candidates.sort(key=lambda case: (placed[case], labels[case], _digest(SAMPLE_SALT, unit, case)))
            for case in candidates[:per_domain]:
                kept += rows[unit, case]
                placed[case] += len(rows[unit, case])
                labels[case] += sum(len(trial.requests) for trial in rows[unit, case])
    order = {case.id: i for i, case in enumerate(cases)}
    return sorted(kept, key=lambda trial: (order[trial.case], trial.relation))


# Writing


def plan_text(
    planned: Iterable[Planned],
    cases: Iterable[Case],
    *,
    seed: int,
    draws: int,
    relations: Sequence[str],
    selection: str,
) -> str:
    """Return the text of `tests.jsonl`: the header, then one row a line."""
    by_id = {case.id: case for case in cases}
    header = {
        "format": FORMAT,
        "seed": seed,
        "trials": draws,
        "relations": list(relations),
        "cases": list(by_id),
        "selection": selection,
    }
    lines = [_json(header)]
    own: dict[str, dict[str, str]] = {}
    for each in planned:
        trial = each.trial
        if trial.case not in own:
            questions = by_id[trial.case].questions
            own[trial.case] = {_json(question): key for key, question in reversed(questions.items())}
        known = own[trial.case]
        row = {
            "case": trial.case,
            "relation": trial.relation,
            "key": trial.key,
            "v": trial.v,
            "t": trial.t,
            **_parts(trial, known, by_id[trial.case].questions),
            "reduced": None if each.reduced is None else _parts(each.reduced, known, by_id[trial.case].questions),
        }
        lines.append(_json(row))
    return "\n".join(lines) + "\n"


def _json(value: Any) -> str:
    """Return JSON as plans spell it: non-ASCII kept, but for lone surrogates, which no file can hold."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _parts(trial: Trial, known: Mapping[str, str], questions: Batch) -> dict[str, Any]:
    return {
        "targets": list(trial.targets),
        "requests": {
            label: [[key, _reference(key, question, known, questions)] for key, question in batch.items()]
            for label, batch in trial.requests.items()
        },
        "params": dict(trial.params),
    }


def _reference(key: str, question: Question, known: Mapping[str, str], questions: Batch) -> Question:
    """Write a question that is one of the case's own, order included, as a reference to it."""
    if questions.get(key) is question:
        return {"@": key}
    own = known.get(_json(question))
    return question if own is None else {"@": own}


def compressed(text: str) -> bytes:
    """Compress a plan's text: level 9, no file name, no time, so that only the zlib build can change a byte."""
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def count_requests(trials: Iterable[Trial], cases: Sequence[Case]) -> int:
    """Count what a run sends: one source request a case, and the distinct requests of each case."""
    distinct: dict[str, set[str]] = {case.id: {_json(case.questions)} for case in cases}
    for trial in trials:
        distinct[trial.case].update(_json(batch) for batch in trial.requests.values())
    return sum(map(len, distinct.values()))
