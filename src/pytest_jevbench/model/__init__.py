"""Who answers: servers, functions in this process, and the embedded reference models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import SettingError, show
from .base import Model, Reply, Request
from .embedded import EMBEDDED, embedded
from .function import find_callable, from_callable

__all__ = ["EMBEDDED", "Model", "Reply", "Request", "as_replicas", "embedded", "find_callable", "from_callable"]


def as_replicas(given: Any, origin: str) -> Sequence[Model]:
    """Return a model, a function or a list of either as replicas of one model; `origin` says who gave it.

    Raises SettingError for what is none of these, and for replicas of different names or revisions.
    """
    parts = given if isinstance(given, list | tuple) else [given]
    if not parts:
        raise SettingError("the list of replicas is empty", origin, expected="a model, a function, or a list of them")
    replicas: list[Model] = []
    for part in parts:
        if not isinstance(part, Model) and not callable(part):
            raise SettingError("this is no model", origin, show(part), "a model, a function, or a list of them")
        replicas.append(part if isinstance(part, Model) else from_callable(part))
    identities = {(each.name, each.id, each.revision) for each in replicas}
    if len(identities) > 1 and any(each.lasting for each in replicas):
        raise SettingError(
            "the replicas are different models",
            origin,
            show(sorted(identities)),
            hint="Give them one name and revision.",
        )
    return replicas
