"""A run: what was planned, what was judged, what went wrong, and the card it becomes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from .card import (
    Card,
    CasesInfo,
    ErrorEntry,
    JudgingSettings,
    Latency,
    ModelInfo,
    Requests,
    Selection,
    SuiteInfo,
    environment,
    now,
    scored_parts,
    tool,
)
from .client import Client
from .errors import JevbenchError, PlanError, SettingError, near
from .judge import Judged, Verdict, judge
from .own import OwnCases
from .plan import Plan, Row, Test, test_id
from .relations import Evidence, select
from .statistics import Statistics
from .suite import Suite

Source = Suite | OwnCases
"""What a run is planned from."""

QUIRKS = {
    "sum": "probabilities that do not sum to 1 (normalised here)",
    "undeclared": "probability on undeclared options (ignored here)",
    "type": "answers of another `type` than the question",
    "no type": "answers without a `type`",
    "model": "answers by another `model` than asked",
}


@dataclass(slots=True)
class Run:
    """One run of (part of) a suite. Verdicts and errors are kept by test id, so that a rerun test counts once."""

    source: Source
    plan: Plan
    settings: JudgingSettings
    selection: Selection
    client: Client | None = None
    counted: Statistics = field(default_factory=Statistics)
    answered_by: tuple[str, str, str] = ("", "", "")
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    errors: dict[str, ErrorEntry] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def test_id(self, test: Test) -> str:
        """Return a test's id."""
        return test_id(self.source.name, test.relation.name, test.case.id, test.key)

    def judge(self, test: Test, evidence: Sequence[Evidence]) -> Judged | None:
        """Judge one test on its evidence. Raises PlanError."""
        try:
            return judge(test.relation, evidence, test.case.domain, self.settings.tolerance)
        except PlanError as error:
            row = test.rows[0]
            raise (error.at(row.where) if isinstance(row, Row) else error) from error

    def record(self, identity: str, verdict: Verdict) -> None:
        """Keep a verdict; it replaces an earlier verdict or error of the same test."""
        self.errors.pop(identity, None)
        self.verdicts[identity] = verdict

    def error_entry(self, identity: str, test: Test, error: JevbenchError) -> ErrorEntry:
        """Say why a test could not be judged, as it stands in the card."""
        return ErrorEntry(
            id=identity,
            relation=test.relation.name,
            case=test.case.id,
            target=test.key,
            kind=type(error).__name__,
            message=str(error),
        )

    def record_error(self, entry: ErrorEntry) -> None:
        """Keep why a test could not be judged."""
        self.verdicts.pop(entry.id, None)
        self.errors[entry.id] = entry

    def planned(self) -> dict[str, int]:
        """Count the planned tests of each relation, in the order of the catalogue."""
        counts = Counter(test.relation.name for test in self.plan.tests)
        return {
            relation.name: counts[relation.name] for relation in select(relations=["all"]) if counts[relation.name]
        }

    def card(self, partial: Sequence[str] = ()) -> Card:
        """Build the card; `partial` says what was left out."""
        order = {self.test_id(test): i for i, test in enumerate(self.plan.tests)}
        verdicts = [self.verdicts[key] for key in sorted(self.verdicts, key=order.__getitem__)]
        return Card(
            created=now(),
            tool=tool(),
            suite=_suite_info(self.source),
            cases=_cases_info(self.source),
            model=self._model(),
            environment=environment(),
            settings=self.settings,
            selection=self.selection,
            partial=list(partial) or None,
            requests=self._requests(),
            warnings=[*self.warnings, *quirk_notes(self.statistics)],
            errors=[self.errors[key] for key in sorted(self.errors, key=order.__getitem__)],
            **scored_parts(self.source.name, verdicts, self.planned(), self.settings),
        )

    @property
    def statistics(self) -> Statistics:
        """What was counted: by this process's client, or by the clients of workers."""
        return self.client.statistics if self.client else self.counted

    def _model(self) -> ModelInfo:
        named = sorted(self.statistics.answered_as)
        if self.client is None:
            name, model_id, revision = self.answered_by
            return ModelInfo(name=name, id=model_id, revision=revision, answered_as=named, replicas=[])
        model = self.client.model
        replicas = [getattr(each, "shown_url", each.name) for each in self.client.replicas]
        return ModelInfo(name=model.name, id=model.id, revision=model.revision, answered_as=named, replicas=replicas)

    def _requests(self) -> Requests:
        stats = self.statistics
        return Requests(
            distinct=stats.distinct,
            sent=stats.sent,
            attempts=stats.attempts,
            cached=stats.cached,
            retries=dict(stats.retries),
            refused=stats.refused,
            failed=stats.failed,
            latency_ms=_latency(stats.latencies),
            tokens=dict(stats.tokens),
            seconds=round(time.monotonic() - self.started, 3),
        )


def quirk_notes(statistics: Statistics) -> list[str]:
    """Say what was odd but usable about the answers, how often, and the worst of it."""
    found = []
    for kind, text in QUIRKS.items():
        quirk = statistics.quirks.get(kind)
        if quirk is not None:
            worst = f", off by up to {quirk.worst:.3g}" if kind in ("sum", "undeclared") else ""
            place = f"{quirk.where!r}" if kind == "model" else f"question {quirk.where!r}"
            found.append(f"{quirk.count} {text}{worst} ({place})")
    if len(statistics.answered_as) > 1:
        names = ", ".join(f"{name} ({n:,})" for name, n in sorted(statistics.answered_as.items()))
        found.append(f"answers came from more than one model: {names}")
    return found


def _suite_info(source: Source) -> SuiteInfo | None:
    if not isinstance(source, Suite):
        return None
    return SuiteInfo(
        name=source.name,
        edition=source.edition,
        version=source.version,
        digests=dict(source.digests),
        plan_sha256=source.plan_sha256,
    )


def _cases_info(source: Source) -> CasesInfo | None:
    if not isinstance(source, OwnCases):
        return None
    return CasesInfo(file=source.file, sha256=source.sha256, seed=source.seed, draws=source.draws)


def _latency(seconds: Sequence[float]) -> Latency | None:
    if not seconds:
        return None
    ordered = sorted(1000 * value for value in seconds)
    return Latency(
        p50=round(ordered[len(ordered) // 2], 3),
        p95=round(ordered[int(0.95 * (len(ordered) - 1))], 3),
        max=round(ordered[-1], 3),
    )


def prepare(
    source: Source,
    settings: JudgingSettings,
    *,
    domains: Sequence[str] = (),
    dimensions: Sequence[str] = (),
    groups: Sequence[str] = (),
    relations: Sequence[str] = (),
) -> Run:
    """Select a part of a suite's plan. Raises SettingError for unknown names and for a selection without tests."""
    known = list(dict.fromkeys(case.domain for case in source.plan.cases.values()))
    for domain in domains:
        if domain not in known:
            raise SettingError(f"{source.name} has no domain {domain!r}", hint=near(domain, known))
    plan = source.plan.select(select(dimensions, groups, relations), domains)
    if not plan.tests:
        raise SettingError(
            f"the selection leaves no test of {source.name}",
            hint="The plan holds none of the selected relations on the selected domains.",
        )
    selection = Selection(
        domains=list(domains) or None,
        dimensions=list(dimensions) or None,
        groups=list(groups) or None,
        relations=list(relations) or None,
    )
    return Run(source, plan, settings, selection)


def when(seconds: float) -> str:
    """Return a moment (seconds since the epoch) for a person."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def cache_note(statistics: Statistics) -> str:
    """Say where the answers came from, and from when the kept ones are."""
    parts = [f"{statistics.distinct:,} distinct, {statistics.sent:,} sent"]
    if statistics.cached and statistics.oldest is not None and statistics.newest is not None:
        first, last = when(statistics.oldest), when(statistics.newest)
        parts.append(
            f"{statistics.cached:,} from the cache (asked {first}" + (f" to {last})" if last != first else ")")
        )
    for count, what in (
        (sum(statistics.retries.values()), "retries"),
        (statistics.refused, "refused"),
        (statistics.failed, "failed"),
    ):
        if count:
            parts.append(f"{count:,} {what}")
    return ", ".join(parts)
