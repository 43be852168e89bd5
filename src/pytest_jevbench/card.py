"""The coherence card: everything a run found out, as one JSON file that can be read, compared and judged again.

The models below are the card's schema; `Card.model_json_schema()` gives it as JSON Schema. Scores and rates lie in
[0, 1]; null means not scored or not measured, never zero.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from . import __version__
from .errors import CardError, SettingError, near
from .judge import Verdict, from_plain, plain, rejudged
from .lines import decode, read_bytes
from .plan import own_name, test_id
from .relations import CATALOGUE
from .scores.coherence import Check, Coherence, View, by_domain, score
from .taxonomy import DIMENSIONS
from .wire import problems

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Unit = Share | None
Interval = tuple[float, float]
LEVELS = ("dimension", "group", "relation", "domain")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tool(_Part):
    """What wrote the card."""

    name: str
    version: str


class SuiteInfo(_Part):
    """Which suite was run: cards are compared only when `plan_sha256` (of the plan's text) is the same."""

    name: str
    edition: str
    version: str
    digests: dict[str, str]
    plan_sha256: str

    @property
    def label(self) -> str:
        """The suite's name with its edition."""
        return f"{self.name}@{self.edition}"


class CasesInfo(_Part):
    """Which own cases were run, and what their trials were built from."""

    file: str
    sha256: str
    seed: int
    draws: int
    repeats: int = 1

    @property
    def name(self) -> str:
        """What test ids begin with: the file's name without its endings."""
        return own_name(self.file)

    @property
    def label(self) -> str:
        """The file with the start of its digest."""
        return f"{self.file}@{self.sha256[:12]}"


class ModelInfo(_Part):
    """Who answered: what was asked for, and the names the model gave itself."""

    name: str
    id: str
    revision: str
    answered_as: list[str]
    replicas: list[str]


class JudgingSettings(_Part):
    """How the answers were judged."""

    tolerance: float = Field(ge=0, le=1)
    min_n: int = Field(ge=1)
    bootstrap: int = Field(ge=0)


class Selection(_Part):
    """Which part of the plan was asked for; null: all of it."""

    domains: list[str] | None
    dimensions: list[str] | None
    groups: list[str] | None
    relations: list[str] | None


class Graded(_Part):
    """The graded view: how far laws are missed, rather than how often."""

    overall: Unit
    dimensions: dict[str, Unit]
    groups: dict[str, Unit]
    relations: dict[str, float]


class Intervals(_Part):
    """95 % bootstrap intervals over cases."""

    overall: Interval | None
    graded_overall: Interval | None


class UnscoredEntry(_Part):
    """A planned relation without a score."""

    relation: str
    reason: str


class Scores(_Part):
    """The scores of a run: 1 minus the violation rate, averaged."""

    overall: Unit
    ci: Intervals
    dimensions: dict[str, Unit]
    groups: dict[str, Unit]
    relations: dict[str, float]
    graded: Graded
    unscored: list[UnscoredEntry]


class VariantRate(_Part):
    """The violations of one variant of a relation."""

    n: int
    violation_rate: float


class CheckEntry(_Part):
    """What was measured of one relation; deviations in the unit of its check."""

    check: str
    n: int
    planned: int
    coverage: float
    score: Unit
    graded: Unit
    wilson: Interval | None = Field(description="95 % interval of the violation rate")
    mean: Unit
    median: Unit
    p90: Unit
    flip_rate: Unit
    by_variant: dict[str, VariantRate]


class DomainScores(_Part):
    """The scores of one domain's cases: no interval, no coverage rule."""

    cases: int
    tests: int
    overall: Unit
    dimensions: dict[str, Unit]


class Detail(_Part):
    """What a verdict rests on: the worst deviation of each variant, and the numbers the law is about."""

    variants: dict[Annotated[str, Field(pattern=r"^\d+$")], float | None]
    terms: dict[str, float]


class TestEntry(_Part):
    """One judged test. A null deviation was not finite."""

    __test__ = False

    id: str
    relation: str
    case: str
    target: str
    domain: str
    deviation: float | None
    tolerance: float
    violated: bool
    graded: float
    flip: bool | None
    detail: Detail


class Latency(_Part):
    """Milliseconds an answer took, retries included."""

    p50: float
    p95: float
    max: float


class Requests(_Part):
    """What was asked: every distinct request was sent, found in the cache, refused or failed."""

    distinct: int
    sent: int
    attempts: int
    cached: int
    retries: dict[str, int]
    refused: int
    failed: int
    latency_ms: Latency | None
    tokens: dict[str, int]
    seconds: float


class ErrorEntry(_Part):
    """A test that could not be judged, and why."""

    id: str
    relation: str
    case: str
    target: str
    kind: str
    message: str


class Card(BaseModel):
    """A coherence card."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    jevbench_card: Literal[1] = 1
    created: str
    tool: Tool
    suite: SuiteInfo | None = None
    cases: CasesInfo | None = None
    model: ModelInfo
    environment: dict[str, str]
    settings: JudgingSettings
    selection: Selection
    partial: list[str] | None
    scores: Scores
    checks: dict[str, CheckEntry]
    domains: dict[str, DomainScores]
    tests: list[TestEntry]
    requests: Requests
    warnings: list[str]
    errors: list[ErrorEntry]

    @staticmethod
    def load(path: str | Path) -> Card:
        """Read a card. Raises CardError that names the file, the field and what was found."""
        path = Path(path)
        raw = decode(read_bytes(path, CardError), str(path), CardError, whole=True)
        if not isinstance(raw, dict) or "jevbench_card" not in raw:
            raise CardError("this is no coherence card", str(path), expected='an object with "jevbench_card": 1')
        try:
            card = Card.model_validate(raw)
        except ValidationError as broken:
            field, message, found = problems(broken, raw)[0]
            raise CardError(message, f"{path}: {field}", found) from None
        _agree(card, path)
        return card

    def save(self, path: str | Path) -> None:
        """Write the card whole or not at all, in place of an older one. Raises CardError when that fails."""
        path = Path(path)
        absent = {name for name in ("suite", "cases") if getattr(self, name) is None}
        text = _text(self.model_dump(exclude=absent))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            try:
                Path(name).chmod(0o644)
                Path(name).replace(path)
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as broken:
            raise CardError(f"the card cannot be written ({broken.strerror})", str(path)) from broken

    @model_validator(mode="after")
    def _names_what_was_run(self) -> Card:
        if (self.suite is None) == (self.cases is None):
            raise ValueError("a card names a suite or cases, one of the two")
        return self

    @property
    def ran(self) -> SuiteInfo | CasesInfo:
        """What was run."""
        found = self.suite or self.cases
        if found is None:
            raise AttributeError("a card names a suite or cases")
        return found

    @property
    def verdicts(self) -> list[Verdict]:
        """The judged tests."""
        return [from_plain(test.model_dump()) for test in self.tests]

    @property
    def planned(self) -> dict[str, int]:
        """How many tests of each relation were planned."""
        return {name: check.planned for name, check in self.checks.items()}

    def judged_again(
        self, tolerance: float | None = None, min_n: int | None = None, bootstrap: int | None = None
    ) -> Card:
        """Judge and score the same answers with other settings; no request is sent. Raises SettingError."""
        given = {"tolerance": tolerance, "min_n": min_n, "bootstrap": bootstrap}
        wanted = self.settings.model_dump() | {name: value for name, value in given.items() if value is not None}
        try:
            settings = JudgingSettings(**wanted)
        except ValidationError as broken:
            field, message, found = problems(broken, wanted)[0]
            raise SettingError(message, field, found) from None
        verdicts = [rejudged(verdict, CATALOGUE[verdict.relation], settings.tolerance) for verdict in self.verdicts]
        return self.model_copy(
            update={"settings": settings, **scored_parts(self.ran.name, verdicts, self.planned, settings)}
        )

    def table(self, level: str = "dimension") -> str:
        """Return the scores as a text table: dimensions, groups, relations or domains.

        Raises SettingError for another level.
        """
        if level not in LEVELS:
            raise SettingError(f"there is no level {level!r}", hint=near(level, list(LEVELS)))
        rows = {
            "dimension": self._dimension_rows,
            "group": self._group_rows,
            "relation": self._relation_rows,
            "domain": self._domain_rows,
        }[level]()
        text = aligned(rows)
        if level == "domain" and all(domain.overall is None for domain in self.domains.values()):
            text += f"\nNo domain has {self.settings.min_n} tests (min_n) of a relation in every dimension."
        return text

    def _dimension_rows(self) -> list[list[str]]:
        rows = [["dimension", "", "score", "graded"]]
        for code, dimension in DIMENSIONS.items():
            rows.append(
                [
                    code,
                    dimension.title,
                    points(self.scores.dimensions[code]),
                    points(self.scores.graded.dimensions[code]),
                ]
            )
        return [*rows, ["overall", "", points(self.scores.overall), points(self.scores.graded.overall)]]

    def _group_rows(self) -> list[list[str]]:
        rows = [["group", "score", "graded"]]
        return rows + [
            [group, points(value), points(self.scores.graded.groups[group])]
            for group, value in self.scores.groups.items()
        ]

    def _relation_rows(self) -> list[list[str]]:
        reasons = {entry.relation: entry.reason for entry in self.scores.unscored}
        rows = [["relation", "score", "graded", "tests", "mean", "median", "p90", "flips", "not scored because"]]
        for name, check in self.checks.items():
            rows.append(
                [
                    name,
                    points(check.score),
                    points(check.graded),
                    f"{check.n}/{check.planned}",
                    *(deviation(value) for value in (check.mean, check.median, check.p90)),
                    points(check.flip_rate),
                    reasons.get(name, ""),
                ]
            )
        return rows

    def _domain_rows(self) -> list[list[str]]:
        rows = [["domain", "overall", *DIMENSIONS, "cases", "tests"]]
        for name, domain in self.domains.items():
            rows.append(
                [
                    name or "(none)",
                    points(domain.overall),
                    *(points(domain.dimensions[code]) for code in DIMENSIONS),
                    str(domain.cases),
                    str(domain.tests),
                ]
            )
        return rows


def _text(data: Mapping[str, Any]) -> str:
    """Write one field a line and one test a line: readable, and many times faster than indenting."""

    def plain(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    lines = [
        f"{plain(key)}: "
        + ("[\n  " + ",\n  ".join(map(plain, value)) + "\n ]" if isinstance(value, list) and value else plain(value))
        for key, value in data.items()
    ]
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def _agree(card: Card, path: Path) -> None:
    """Check what the schema cannot say: names that must be known, or the same in two places. Raises CardError."""
    for place, names in (("checks", card.checks), ("tests", dict.fromkeys(test.relation for test in card.tests))):
        for name in names:
            if name not in CATALOGUE:
                raise CardError(
                    f"there is no relation {name!r}", f"{path}: {place}", hint=near(name, list(CATALOGUE))
                )
    dimensions = {"scores": card.scores.dimensions, "scores.graded": card.scores.graded.dimensions}
    dimensions |= {f"domains.{name}": domain.dimensions for name, domain in card.domains.items()}
    for place, given in dimensions.items():
        if given.keys() != DIMENSIONS.keys():
            missing = ", ".join(sorted(DIMENSIONS.keys() ^ given.keys()))
            raise CardError(f"a dimension is missing or unknown: {missing}", f"{path}: {place}.dimensions")
    for part in ("groups", "relations"):
        other = getattr(card.scores, part).keys() ^ getattr(card.scores.graded, part).keys()
        if other:
            what = f"{part} that are not both scored and graded: {', '.join(sorted(other))}"
            raise CardError(what, f"{path}: scores.graded.{part}")


def points(value: float | None) -> str:
    """Return a share as points of 100 with one decimal, `-` for null."""
    return "-" if value is None else f"{100 * value:.1f}"


def deviation(value: float | None) -> str:
    """Return a deviation with three decimals, `-` for null."""
    return "-" if value is None else f"{value:.3f}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Lay rows out in columns: names to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    numeric = [i > 0 and all(_is_figure(row[i]) for row in rows[1:]) for i in range(len(widths))]
    lines = []
    for row in rows:
        cells = [cell.rjust(w) if n else cell.ljust(w) for cell, w, n in zip(row, widths, numeric, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _is_figure(cell: str) -> bool:
    return cell == "-" or cell.replace(".", "").replace("/", "").isdigit()


# Building a card


def scored_parts(
    name: str, verdicts: Sequence[Verdict], planned: Mapping[str, int], settings: JudgingSettings
) -> dict[str, Any]:
    """Score verdicts and return the parts of a card that follow from them: scores, checks, domains and tests."""
    result = score(verdicts, planned, CATALOGUE, min_n=settings.min_n, bootstrap=settings.bootstrap)
    domains = by_domain(verdicts, planned, CATALOGUE, min_n=settings.min_n)
    judged = {domain: [verdict.case for verdict in verdicts if verdict.domain == domain] for domain in domains}
    return {
        "scores": _scores(result),
        "checks": {relation: _check(relation, check) for relation, check in result.checks.items()},
        "domains": {
            domain: DomainScores(
                cases=len(set(judged[domain])),
                tests=len(judged[domain]),
                overall=each.strict.overall,
                dimensions=dict(each.strict.dimensions),
            )
            for domain, each in domains.items()
        },
        "tests": [
            TestEntry(id=test_id(name, verdict.relation, verdict.case, verdict.target), **plain(verdict))
            for verdict in verdicts
        ],
    }


def _scores(result: Coherence) -> Scores:
    return Scores(
        **_view(result.strict),
        ci=Intervals(**result.ci),
        graded=Graded(**_view(result.graded)),
        unscored=[UnscoredEntry(relation=entry.relation, reason=entry.reason) for entry in result.unscored],
    )


def _view(view: View) -> dict[str, Any]:
    return {
        "overall": view.overall,
        "dimensions": dict(view.dimensions),
        "groups": dict(view.groups),
        "relations": dict(view.relations),
    }


def _check(name: str, check: Check) -> CheckEntry:
    return CheckEntry(
        check=CATALOGUE[name].check,
        n=check.n,
        planned=check.planned,
        coverage=check.coverage,
        score=check.score,
        graded=check.graded,
        wilson=check.wilson,
        mean=check.mean,
        median=check.median,
        p90=check.p90,
        flip_rate=check.flip_rate,
        by_variant={v: VariantRate.model_validate(rate) for v, rate in check.by_variant.items()},
    )


def environment() -> dict[str, str]:
    """Return the versions that may matter to whoever reads the card."""
    import platform
    from importlib.metadata import version

    names = ("pytest", "pytest-xdist", "httpx", "hypothesis", "numpy", "pydantic")
    return {
        "python": platform.python_version(),
        "platform": platform.system().lower(),
        **{name: version(name) for name in names},
    }


def tool() -> Tool:
    """Return what writes cards here."""
    return Tool(name="pytest-jevbench", version=__version__)


def now() -> str:
    """Return the time as a card records it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
