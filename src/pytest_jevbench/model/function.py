"""A model in this process: any function `fn(state, questions) -> answers`."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable
from typing import Any

from ..errors import JevbenchError, ModelError, SettingError, near, show
from .base import Reply, Request

Function = Callable[[Any, dict[str, Any]], Any]


class FunctionModel:
    """Wraps a function. It gets copies of state and questions, which it may change.

    Without a `name` or a `revision` its answers live for the run only.
    """

    def __init__(self, function: Function, name: str = "", revision: str = "") -> None:
        self.function = function
        self.id = getattr(function, "__qualname__", type(function).__name__)
        self.name = name or self.id
        self.revision = revision
        self.lasting = bool(name or revision)

    def ask(self, request: Request) -> Reply:
        """Call the function. Raises ModelError when it raises; a JevbenchError of its own passes through."""
        copy = json.loads(request.text)
        try:
            return Reply(self.function(copy["state"], copy["questions"]))
        except JevbenchError:
            raise
        except Exception as broken:
            place = origin_of(broken)
            raise ModelError(
                f"the function raised {type(broken).__name__}: {show(_message(broken), 200)}",
                f"model {self.name}",
                hint="It is called as fn(state, questions)." if place.startswith(__file__) else f"See {place}.",
            ) from broken

    def close(self) -> None:
        """Nothing to give back."""


def origin_of(error: BaseException) -> str:
    """Return the file and line where an error was raised."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame is not None else ""


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a broken __str__ of a user's error must not hide where it was raised
        return "<no text>"


def from_callable(function: Function, name: str = "", revision: str = "") -> FunctionModel:
    """Make a model of `fn(state, questions) -> answers`. Raises SettingError when it cannot be called."""
    if not callable(function):
        raise SettingError("the model is no function", found=show(function), expected="fn(state, questions)")
    if inspect.iscoroutinefunction(function):
        raise SettingError(f"{function.__qualname__} is an async function", expected="one that returns the answers")
    return FunctionModel(function, name, revision)


def find_callable(spec: str) -> Function:
    """Import `MODULE:NAME`. Raises SettingError that says which part is missing."""
    module_name, _, name = spec.partition(":")
    if not module_name or not name:
        raise SettingError("a callable is named MODULE:NAME", found=show(spec))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        hint = (
            "Is it on sys.path? `python -m pytest` adds the current folder."
            if (missing.name == module_name.split(".")[0])
            else ""
        )
        raise SettingError(f"the module {missing.name!r} cannot be found", spec, hint=hint) from None
    except (Exception, SystemExit) as broken:
        what = f"importing {module_name!r} raised {type(broken).__name__}: {' '.join(_message(broken).split())[:200]}"
        hint = "" if isinstance(broken, SyntaxError) else f"See {origin_of(broken)}."
        raise SettingError(what, spec, hint=hint) from broken
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            public = [known for known in dir(found) if not known.startswith("_")]
            raise SettingError(f"the module has no {name!r}", spec, hint=near(part, public))
        found = getattr(found, part)
    if not callable(found):
        raise SettingError("this is no function", spec, show(found), "fn(state, questions) -> answers")
    function: Function = found
    return function
