"""Coherence tests for typed decision models, as pytest tests.

The names below are the Python API; each is loaded when it is first used, because every pytest run on a machine that
has the plugin imports this module.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import check, estimate, evaluate, load_cases
    from .card import Card
    from .model.function import from_callable
    from .model.systemone import systemone
    from .suite import load_suite

__version__ = "0.1.0"
__all__ = ["Card", "check", "estimate", "evaluate", "from_callable", "load_cases", "load_suite", "systemone"]

_PLACES = {
    "Card": "card",
    "check": "api",
    "estimate": "api",
    "evaluate": "api",
    "from_callable": "model.function",
    "load_cases": "api",
    "load_suite": "suite",
    "systemone": "model.systemone",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_PLACES[name]}", __name__), name)
