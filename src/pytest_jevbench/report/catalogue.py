"""The catalogue of relations as text and as Markdown, both made from the relations' own metadata."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from ..relations import CATALOGUE, Relation
from ..taxonomy import DIMENSIONS, EDITS, FORMS, GROUPS, dimension_of


def tree(*, verbose: bool = False) -> Iterator[str]:
    """Yield the relations under their dimensions and groups; verbose adds each one's metadata."""
    width = max(map(len, CATALOGUE))
    for group, title in GROUPS.items():
        code = dimension_of(group)
        dimension = DIMENSIONS.get(code)
        if group == next(each for each in GROUPS if dimension_of(each) == code):
            yield (
                f"{code}  {dimension.title}: {dimension.compares}"
                if dimension
                else f"{code}  Diagnostics, not scored"
            )
        yield f"  {group}  {title}"
        for relation in _members(group):
            if not verbose:
                yield f"    {relation.name:<{width}}  {relation.law}"
                continue
            yield f"    {relation.name}"
            yield from wrap(relation.law, 108, initial_indent=" " * 6, subsequent_indent=" " * 6)
            yield f"      form {relation.form}; edits {_edits(relation)}; check {relation.check}; {relation.spread}"
            yield f"      from: {relation.source}"


def _members(group: str) -> list[Relation]:
    return [relation for relation in CATALOGUE.values() if relation.group == group]


def _edits(relation: Relation) -> str:
    return ", ".join(relation.edits) or "nothing"


def markdown() -> str:
    """Return docs/relations.md."""
    scored = [relation for relation in CATALOGUE.values() if relation.scored]
    lines = [
        "# Relations",
        "",
        "<!-- Generated: pytest-jevbench relations --markdown > docs/relations.md -->",
        "",
        f"{len(scored)} relations in {len(DIMENSIONS)} dimensions, and {len(CATALOGUE) - len(scored)} diagnostics.",
        "Each is one transformation of the questions with one law about the answers; the state is never edited. A",
        "test is violated when its deviation exceeds the tolerance (0.05 unless a relation has its own) by more than",
        "1e-9. Diagnostics are never scored.",
        "",
        "| dimension | what its laws compare | relations |",
        "|---|---|---:|",
        *(
            f"| **{d.code}** {d.title} | {d.compares} | {sum(r.dimension == d.code for r in scored)} |"
            for d in DIMENSIONS.values()
        ),
        "",
        "Forms of law: " + "; ".join(f"**{form}** {text}" for form, text in FORMS.items()) + ".",
        "",
        "## What each group edits",
        "",
        f"| group | {' | '.join(EDITS)} |",
        "|---|" + ":-:|" * len(EDITS),
        *("| " + " | ".join([group, *(_count(group, edit) for edit in EDITS)]) + " |" for group in GROUPS),
    ]
    for group, title in GROUPS.items():
        lines += [
            "",
            f"## {group}: {title}",
            "",
            "| relation | law | form | edits | check | variants | source |",
            "|---|---|---|---|---|---|---|",
        ]
        lines += [
            f"| `{r.name}` | {r.law} | {r.form} | {_edits(r)} | `{r.check}`{_own(r)} | {r.spread} | {r.source} |"
            for r in _members(group)
        ]
    return "\n".join(lines) + "\n"


def _count(group: str, edit: str) -> str:
    return str(sum(edit in relation.edits for relation in _members(group)) or "")


def _own(relation: Relation) -> str:
    return "" if relation.tolerance is None else f" (tolerance {relation.tolerance:g})"
