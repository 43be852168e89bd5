"""Finding the one model of a session: from an option or from a conftest hook, never from two places."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from . import options
from .cache import MemoryStore, Store, open_store
from .client import Client
from .errors import JevbenchError, SettingError, show
from .model import Model, as_replicas, embedded, find_callable, from_callable
from .model.function import origin_of

SOURCES = ("url", "callable", "embedded")


def make_client(config: pytest.Config) -> Client:
    """Find the model and make the session's client. Raises UsageError when there is none, two, or an unusable one."""
    folder = cache_folder(config)
    if folder.exists() and not folder.is_dir():
        raise pytest.UsageError(
            f"{folder}: this is a file, no folder for a cache; choose another with --jev-cache=DIR"
        )
    try:
        replicas, slots = _share(config, find_model(config))
        return Client(
            replicas,
            make_store(config, replicas[0]),
            slots=slots,
            budget=_budget(config),
            min_interval=options.connection(config).min_interval * _workers(config),
        )
    except JevbenchError as error:
        raise pytest.UsageError(str(error)) from error


def worker_input(config: Any) -> dict[str, Any]:
    """Return what the controller told this worker; empty in any other process. pytest does not declare the field."""
    told: dict[str, Any] = getattr(config, "workerinput", {})
    return told


def worker_output(config: Any) -> dict[str, Any]:
    """Return what this worker will tell the controller at its end."""
    told: dict[str, Any] = config.workeroutput
    return told


def _workers(config: pytest.Config) -> int:
    return int(worker_input(config).get("workercount", 1))


def _budget(config: pytest.Config) -> int | None:
    """Return this process's part of the budget: workers share it, less the opening request of their controller."""
    most, told = options.connection(config).max_requests, worker_input(config)
    if most is None or not told:
        return most
    most -= told["jev_opened"]
    return len(range(told["jev_place"], most, told["workercount"]))


def _share(config: pytest.Config, replicas: Sequence[Model]) -> tuple[Sequence[Model], list[int]]:
    """Return the replicas that this process may ask, and how many slots each has here; workers share them.

    Raises SettingError when there are more workers than slots (the controller cannot count those of a hook's model).
    """
    served, told = hasattr(replicas[0], "url"), worker_input(config)
    per_replica = options.connection(config).per_replica if served else 1
    if not told or not (served or len(replicas) > 1):
        return replicas, [per_replica] * len(replicas)
    every = list(range(len(replicas))) * per_replica
    if told["workercount"] > len(every):
        raise too_many_workers(told["workercount"], len(every))
    share = every[told["jev_place"] :: told["workercount"]]
    own = sorted(set(share))
    return [replicas[i] for i in own], [share.count(i) for i in own]


def too_many_workers(workers: int, slots: int) -> SettingError:
    """Say that a model has fewer slots than there are workers, and what to do."""
    return SettingError(
        f"-n {workers}: the model has {slots} slots, fewer than workers",
        hint=f"Use -n {slots} (or -n auto), or give it more slots: further replicas in --jev-url, or a larger "
        "--jev-per-replica",
    )


def find_model(config: pytest.Config) -> Sequence[Model]:
    """Return the replicas of the one model that is named. Raises UsageError or SettingError."""
    named = [(name, *options.given(config, name)) for name in SOURCES]
    found = [(origin, name, value) for name, value, origin in named if value]
    hooked = _from_hook(config)
    origins = [origin for origin, _, _ in found] + [origin for origin, _ in hooked]
    if not origins:
        raise pytest.UsageError(
            "no model to test: give one of --jev-url=URL, --jev-callable=MODULE:NAME, --jev-embedded=NAME, "
            "or implement the hook pytest_jev_model in conftest.py"
        )
    if len(origins) > 1:
        raise pytest.UsageError(f"more than one model to test: {' and '.join(origins)}; keep one of them")
    if hooked:
        return as_replicas(hooked[0][1], origins[0])
    origin, name, value = found[0]
    try:
        return _from_option(config, name, value)
    except SettingError as error:
        raise error.at(origin) from error


def _from_hook(config: pytest.Config) -> list[tuple[str, Any]]:
    """Ask every conftest that implements the hook; (who, what) for each that gives something."""
    hook = config.hook.pytest_jev_model
    found = []
    for implementation in hook.get_hookimpls():
        others = [each.plugin for each in hook.get_hookimpls() if each is not implementation]
        who = f"pytest_jev_model of {_place(implementation.plugin)}"
        try:
            results = config.pluginmanager.subset_hook_caller("pytest_jev_model", others)(config=config)
        except JevbenchError as error:
            raise error.at(who) from error
        except Exception as broken:
            raise SettingError(
                f"the hook raised {type(broken).__name__}: {show(str(broken), 200)}",
                who,
                hint=f"See {origin_of(broken)}.",
            ) from broken
        found += [(who, result) for result in results]
    return found


def _place(plugin: Any) -> str:
    return str(getattr(plugin, "__file__", None) or plugin)


def _from_option(config: pytest.Config, name: str, value: str) -> Sequence[Model]:
    parts = options.names(config, name)
    revision = options.text(config, "revision") or ""
    if name == "embedded":
        if len(parts) > 1:
            raise SettingError("an embedded model is one name", found=value)
        return [embedded(parts[0])]
    if name == "callable":
        here = str(config.invocation_params.dir)
        if here not in sys.path:
            sys.path.insert(0, here)
        return [from_callable(find_callable(part), revision=revision) for part in parts]
    from .model.systemone import SystemOne

    variable = options.text(config, "api-key-env") or ""
    key = os.environ.get(variable, "")
    if not key and options.given(config, "api-key-env")[1]:
        raise SettingError(f"the variable {variable} that --jev-api-key-env names is not set")
    if not key.isascii() or not key.isprintable():
        raise SettingError(
            f"the token in {variable} cannot be sent", expected="printable ASCII", hint="Does it end in a line break?"
        )
    wanted = options.connection(config)
    model_id = options.text(config, "model-id") or "jev-latest"
    replicas = [SystemOne(url, model_id, revision, key, wanted.timeout, wanted.retries) for url in parts]
    for replica in replicas:
        replica.replicated = len(replicas) > 1
    return replicas


def cache_folder(config: pytest.Config) -> Path:
    """Return the folder for answers and cards (the default one when answers live in memory)."""
    name = options.settings(config).cache
    return config.rootpath / (".jevbench-cache" if name == "memory" else name)


def make_store(config: pytest.Config, model: Model) -> Store:
    """Make the store for a model's answers. Raises SettingError for a cache that cannot be used."""
    if options.settings(config).cache == "memory" or not model.lasting:
        return MemoryStore()
    return open_store(cache_folder(config), model)
