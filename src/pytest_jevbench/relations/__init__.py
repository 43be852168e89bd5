"""The catalogue of relations: 50 scored ones in five dimensions, and two diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import SettingError, near
from ..taxonomy import DIAGNOSTICS, DIMENSIONS, GROUPS
from . import bat, cho, diag, log, mea, rep
from .base import Evidence, Outcome, Relation, Trial

__all__ = ["CATALOGUE", "Evidence", "Outcome", "Relation", "Trial", "select"]

CATALOGUE: Mapping[str, Relation] = {
    relation.name: relation for module in (rep, bat, mea, log, cho, diag) for relation in module.RELATIONS
}
"""Every relation by name, in catalogue order."""


def select(
    dimensions: Iterable[str] = (), groups: Iterable[str] = (), relations: Iterable[str] = ()
) -> list[Relation]:
    """Return the relations of the union of the three selections; every scored one when all are empty.

    `all` stands for everything and `diagnostics` for the two diagnostics, in any of the three.
    Raises SettingError for a name that is not known.
    """
    wanted = [*dimensions, *groups, *relations]
    if not wanted:
        return [relation for relation in CATALOGUE.values() if relation.scored]
    for names, known, what in (
        (dimensions, [*DIMENSIONS, DIAGNOSTICS], "dimension"),
        (groups, list(GROUPS), "group"),
        (relations, list(CATALOGUE), "relation"),
    ):
        for name in names:
            if name not in (*known, "all", "diagnostics"):
                raise SettingError(f"there is no {what} {name!r}", hint=near(name, known))
    chosen = set(wanted)
    return [
        relation
        for relation in CATALOGUE.values()
        if chosen & {"all", relation.name, relation.group, relation.dimension}
        or (not relation.scored and "diagnostics" in chosen)
    ]
