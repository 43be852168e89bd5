"""What a run found out, as lines of text: the score first, then where it comes from and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from textwrap import wrap

from ..card import Card, deviation, points
from ..judge import TOLERANCE
from ..relations import CATALOGUE
from ..taxonomy import DIMENSIONS, GROUPS, dimension_of

BAR = 12
WIDTH = 118
MOST_REASONS = 8
MOST_ERRORS = 5


def compared_with(card: Card) -> str:
    """Say in one line what the score can be compared with."""
    label = card.ran.label
    if card.partial:
        return f"A partial run of {label}: compare nothing but the relations it scored."
    if any(value for _, value in card.selection):
        return f"A selection of {label}: comparable with the same selection of it only."
    if card.settings.tolerance != TOLERANCE:
        return f"Comparable with runs of {label} at the tolerance {card.settings.tolerance:g} only."
    if card.suite is not None and card.suite.edition.startswith("jevbench-"):
        return (
            f"Comparable with every run of {label}, the edition of the official leaderboard, at the same tolerance."
        )
    return f"Comparable with runs of {label} at the same tolerance only."


def overall(card: Card) -> Iterator[str]:
    """Yield the overall score with its interval, what it rests on and what it can be compared with."""
    score = points(card.scores.overall)
    interval = card.scores.ci.overall
    spread = f"  95% interval {points(interval[0])} to {points(interval[1])}" if interval else ""
    graded = f"  graded {points(card.scores.graded.overall)}" if card.scores.overall is not None else ""
    judged = len(card.tests)
    yield f"coherence  {score}{spread}{graded}"
    yield (
        f"           {plural(judged, 'test')} judged, {sum(test.violated for test in card.tests):,} violated; "
        f"{'suite' if card.suite else 'cases'} {card.ran.label}, tolerance {card.settings.tolerance:g}"
    )
    yield from (f"           {line}" for line in wrap(compared_with(card), 100))
    if card.scores.overall is None:
        yield f"           No overall score: {_why_no_overall(card)}"


def scores(card: Card) -> Iterator[str]:
    """Yield the score table: overall, then dimensions with their groups (relations where no dimension is scored)."""
    yield from overall(card)
    yield ""
    if all(value is None for value in card.scores.dimensions.values()):
        width = max(map(len, card.scores.relations), default=0)
        yield from (
            f"  {name:<{width}}  {points(value):>5}  {_bar(value)}" for name, value in card.scores.relations.items()
        )
        return
    for code, dimension in DIMENSIONS.items():
        value = card.scores.dimensions[code]
        groups = [
            f"{GROUPS.get(group, group).lower()} {points(each)}"
            for group, each in card.scores.groups.items()
            if dimension_of(group) == code
        ]
        if value is None and not groups:
            continue
        yield f"  {code}  {dimension.title:<26} {points(value):>5}  {_bar(value)}  {', '.join(groups)}".rstrip()


def _why_no_overall(card: Card) -> str:
    missing = [code for code, value in card.scores.dimensions.items() if value is None]
    if not card.scores.relations:
        return f"no relation is scored (min_n is {card.settings.min_n})."
    return f"it is the mean of all five dimensions; without a score: {', '.join(missing)}."


def _bar(value: float | None) -> str:
    return "" if value is None else ("█" * round(BAR * value)).ljust(BAR, "░")


def unscored(card: Card) -> Iterator[str]:
    """Yield what was left unscored and why, relations with the same reason together."""
    by_reason: dict[str, list[str]] = {}
    for entry in card.scores.unscored:
        by_reason.setdefault(entry.reason, []).append(entry.relation)
    for reason, names in list(by_reason.items())[:MOST_REASONS]:
        everything = len(names) == len(card.checks)
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        listed = "every relation" if everything else ", ".join(names[:6]) + more
        yield f"not scored: {listed}: {reason}"
    if len(by_reason) > MOST_REASONS:
        yield f"not scored: {len(by_reason) - MOST_REASONS} further reasons (see the card)"


def violated_relations(card: Card, explained: int) -> Iterator[str]:
    """Yield one line for each relation that was violated, the most violated first."""
    counts = Counter(test.relation for test in card.tests if test.violated)
    if not counts:
        return
    above = f"{explained} explained above; " if explained else ""
    yield f"violations by relation ({above}-vv explains all, -k RELATION selects one):"
    width = max(map(len, counts))
    rates = sorted(counts, key=lambda name: (-counts[name] / card.checks[name].n, name))
    for name in rates:
        check = card.checks[name]
        figures = f"{counts[name]:>5} of {check.n:<5}  mean {deviation(check.mean)}"
        yield shorten(f"  {name:<{width}}  {figures}  {CATALOGUE[name].law}")


def plural(n: int, what: str) -> str:
    """Count things."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def shorten(line: str) -> str:
    """Cut a line to the width of the summary."""
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def errors(card: Card) -> Iterator[str]:
    """Yield what could not be judged, requests with the same message together."""
    messages = Counter(entry.message for entry in card.errors)
    if not messages:
        return
    yield f"{plural(len(card.errors), 'test')} could not be judged:"
    for message, count in messages.most_common(MOST_ERRORS):
        yield f"  {count:,} x {message}"
    if len(messages) > MOST_ERRORS:
        yield f"  and {len(messages) - MOST_ERRORS} other messages (see the card)"


def partial(card: Card) -> Iterator[str]:
    """Yield what a partial run left out."""
    for reason in card.partial or ():
        yield f"partial: {reason}"


def warnings(lines: Sequence[str]) -> Iterator[str]:
    """Yield the warnings."""
    for line in lines:
        yield f"warning: {line}"
