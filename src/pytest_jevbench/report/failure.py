"""Why one test failed, for a tired engineer: the law, what was edited, both answers, the deviation, what to run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import ndiff
from textwrap import wrap

from ..judge import Judged
from ..plan import Test, edited_questions
from ..relations import Trial
from ..wire import Question, argmax

WIDTH = 110
BAR = 24
MOST_LINES = 8
"""An edit or an answer of more lines is cut in the middle, and says so."""


def headline(test: Test, judged: Judged) -> str:
    """Say in one line what was violated."""
    verdict = judged.verdict
    return (
        f"{test.relation.name}: {test.relation.check} is {verdict.deviation:.4g}, "
        f"tolerance {verdict.tolerance:g} (case {verdict.case}, question {verdict.target})"
    )


def explain(test: Test, judged: Judged, rerun: str = "") -> str:
    """Explain a judged test in full; `rerun` is the command that runs just this test."""
    verdict, outcome = judged.verdict, judged.outcome
    relation = test.relation
    asked = outcome.target if outcome.target == test.key else f"{test.key}, judged on {outcome.target}"
    judgement = "violated" if verdict.violated else "holds"
    result = f"{relation.check} = {verdict.deviation:.4f}, tolerance {verdict.tolerance:g}: {judgement}"
    lines = [
        f"{relation.name} ({relation.group})",
        f"  law: {relation.law}",
        f"  case {verdict.case}, question {asked}",
        *_edit(judged.evidence.trial, test),
        *_answers(judged),
        f"  {result}{_flip(outcome.flip)}",
    ]
    if rerun:
        lines.append(f"  rerun: {rerun}")
    return "\n".join(_printable(line) for line in lines)


def _printable(line: str) -> str:
    """Escape control characters: ids and texts come from anywhere."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in line)


def _flip(flip: bool | None) -> str:  # noqa: FBT001 - one of three states, named by its only caller
    if flip is None:
        return ""
    return ", and the decision changes" if flip else ", the decision stays the same"


def _edit(trial: Trial, test: Test) -> Iterator[str]:
    """Show what was sent differently: a diff of the edited questions, or how the batch changed."""
    if not trial.requests:
        yield "  nothing was edited: the law is about the source output itself"
        return
    case = test.case
    for label, batch in trial.requests.items():
        named = "" if label == "variant" else f" in request {label!r}"
        before, after = list(case.questions), list(batch)
        changed = (
            edited_questions(trial, case)
            if label == "variant"
            else {
                key: (case.questions.get(key), question)
                for key, question in batch.items()
                if case.questions.get(key) != question
            }
        )
        shown = {key: pair for key, pair in changed.items() if pair[1] is not None}
        dropped = [key for key, pair in changed.items() if pair[1] is None]
        if dropped or (not shown and before != after):
            yield f"  asked{named}: {_cut(', '.join(after))}"
            yield f"  instead of: {_cut(', '.join(before))}"
        if shown:
            yield f"  edited{named}:"
            lines = [line for key, pair in shown.items() for line in _diff(key, *pair, case.questions)]
            yield from _shortened([part for line in lines for part in _wrapped(line)])


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"


def _wrapped(line: str) -> list[str]:
    """Wrap a line of a diff; continuation lines stand to the right of its sign."""
    return wrap(line, WIDTH, initial_indent="    ", subsequent_indent="        ") or [line]


def _diff(key: str, old: Question | None, new: Question | None, own: Mapping[str, Question]) -> Iterator[str]:
    if new is None:
        return
    if old is None:
        twin = next((name for name, question in own.items() if question == new), None)
        if twin is not None:
            yield f"+ {key}: the question {twin} again"
            return
        yield from (f"+ {line}" for line in _question(key, new))
        return
    for line in ndiff(_question(key, old), _question(key, new)):
        if line[0] in "+-":
            yield line


def _question(key: str, question: Question) -> list[str]:
    """Lay a question out in lines, so that a diff shows what changed."""
    lines = [f"{key}: {question['type']}: {_text(question.get('instructions'))}"]
    criteria = question.get("criteria")
    if isinstance(criteria, Mapping):
        lines += [f"{key}.{option}: {_text(text)}" for option, text in criteria.items()]
    elif criteria is not None:
        lines += [f"{key}[{i}]: {_text(text)}" for i, text in enumerate(criteria)]
    return lines


def _text(part: object) -> str:
    return " ".join((part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)).split())


def _answers(judged: Judged) -> Iterator[str]:
    outcome = judged.outcome
    if outcome.terms:
        targets = judged.evidence.trial.targets
        letters = ", ".join(f"{letter} = {key}" for letter, key in zip("ABC", targets, strict=False))
        yield f"  the law is about these numbers{f' ({letters})' if len(targets) > 1 else ''}:"
        width = min(60, max(map(len, outcome.terms)))
        yield from _shortened(
            [
                f"    {name[:width].ljust(width)}  {value:7.4f}  {_bar(value)}".rstrip()
                for name, value in outcome.terms.items()
            ]
        )
        return
    expected, got = outcome.expected, outcome.got
    names = list(dict.fromkeys([*expected, *got]))
    width = min(40, max(map(len, names)))
    first, second = argmax(expected), argmax(got)
    yield f"    {'':{width}}  {'expected':>8}  {'got':>8}"
    rows = []
    for name in names:
        p, q = expected.get(name, 0.0), got.get(name, 0.0)
        picked = "" if first == second else "  <- expected" * (name == first) + "  <- got" * (name == second)
        rows.append(f"    {name[:width].ljust(width)}  {p:8.4f}  {q:8.4f}  {_bar(p)}|{_bar(q)}{picked}".rstrip())
    yield from _shortened(rows)


def _bar(value: float) -> str:
    """Draw a probability; what is no probability (a sum, an excess) gets none."""
    return ("█" * round(BAR / 2 * value)).ljust(BAR // 2) if 0 <= value <= 1 else ""


def _shortened(lines: list[str]) -> list[str]:
    if len(lines) <= MOST_LINES:
        return lines
    half = MOST_LINES // 2
    return [*lines[:half], f"    … {len(lines) - 2 * half} more lines …", *lines[-half:]]
