"""The options: what they are called, where a value may come from, and what it must be.

House rules for help texts: say what it does in the first words, name the default, no full stop. Values are found on
the command line (`addopts` counts), then in the ini file, then, for those that have one, in the environment.
This module is imported by every pytest run: standard library and pytest only.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest


class Option(NamedTuple):
    """One option; `environment` names a variable that may set it."""

    name: str
    metavar: str
    help: str
    default: str | None = None
    environment: str | None = None

    @property
    def flag(self) -> str:
        """The option as typed."""
        return f"--jev-{self.name}"

    @property
    def ini_name(self) -> str:
        """The option's name in an ini file."""
        return f"jev_{self.name.replace('-', '_')}"


OPTIONS = (
    Option(
        "suite",
        "NAME",
        "Run a suite: a folder (with a path separator) or upstream:NAME of the package jevbench, "
        "such as upstream:jevbench-mini; in the ini file it only feeds the fixtures",
    ),
    Option(
        "cases",
        "FILE",
        "Run own cases (JSON Lines) instead of a suite: every test that applies, built from the seed",
    ),
    Option("seed", "N", "Build the trials of own cases from this seed (default: 0)", "0"),
    Option("draws", "N", "Draw this many trials of own cases where a relation draws (default: 1)", "1"),
    Option("rewrites", "BANK", "Take natural rewrites of own cases from this bank (JSON Lines)"),
    Option("audited-only", "yes|no", "Use only rewrites that an audit confirmed (default: no)", "no"),
    Option(
        "items", "yes|no", "Add the plan's tests as items; no keeps it for the fixtures alone (default: yes)", "yes"
    ),
    Option(
        "url",
        "URL[,URL...]",
        "Test the model behind this POST /v1/systemone; several are replicas of one model",
        environment="JEV_URL",
    ),
    Option(
        "model-id",
        "NAME",
        "Name the model in the request's `model` field (default: jev-latest)",
        "jev-latest",
        "JEV_MODEL_ID",
    ),
    Option(
        "revision",
        "TEXT",
        "Name weights or checkpoint; kept answers of another revision are not used",
        "",
        "JEV_REVISION",
    ),
    Option(
        "callable",
        "MODULE:NAME[,...]",
        "Test a function of this process, fn(state, questions) -> answers; several are replicas of one model",
    ),
    Option("embedded", "NAME", "Test an embedded model: uniform, random, luce, luce-biased, sparrow (extra demo)"),
    Option(
        "api-key-env",
        "NAME",
        "Read the bearer token from this variable (default: JEVBENCH_API_KEY)",
        "JEVBENCH_API_KEY",
    ),
    Option("timeout", "S", "Wait this many seconds for one answer, body included (default: 60)", "60"),
    Option("retries", "N", "Try a request this many times again after a passing failure (default: 3)", "3"),
    Option(
        "per-replica",
        "N",
        "Have at most this many requests in flight on each replica (default: 1, which gives the answers of a "
        "sequential run)",
        "1",
    ),
    Option(
        "max-requests", "N", "Send at most this many requests; tests that need more are errors (default: no limit)"
    ),
    Option("min-interval", "S", "Let at least this many seconds pass between two requests (default: 0)", "0"),
    Option("domains", "A,B", "Select the cases of these domains"),
    Option("dimensions", "A,B", "Select the relations of these dimensions: REP, BAT, MEA, LOG, CHO"),
    Option("groups", "A,B", "Select the relations of these groups, such as MEA.partition; a union with the others"),
    Option("relations", "A,B", "Select these relations; `diagnostics` and `all` are names too"),
    Option("tolerance", "X", "Judge a deviation beyond this as a violation (default: 0.05)", "0.05"),
    Option("min-n", "N", "Score a relation from this many tests on (default: the suite's, usually 5)"),
    Option(
        "bootstrap", "N", "Draw this many bootstrap samples for the intervals, 0 for none (default: 1000)", "1000"
    ),
    Option(
        "violations",
        "fail|record",
        "Let a violated test fail, or pass with its violation recorded (default: fail)",
        "fail",
    ),
    Option(
        "cache",
        "DIR|memory",
        "Keep answers in this folder, or for this run only (default: .jevbench-cache under rootdir)",
        ".jevbench-cache",
    ),
    Option("card", "PATH", "Write the JSON card here as well (always: last-card.json in the cache folder)"),
)
PLANS = ("suite", "cases")
"""The options that name a plan; items exist only for one on the command line."""
OWN = ("seed", "draws", "rewrites", "audited-only")
"""The options that build the trials of own cases; a suite is frozen."""
BY_NAME = {option.name: option for option in OPTIONS}


def add(parser: pytest.Parser) -> None:
    """Declare every option and ini value."""
    group = parser.getgroup("jevbench", "coherence tests of a typed decision model (pytest-jevbench)")
    for option in OPTIONS:
        group.addoption(option.flag, dest=_dest(option), metavar=option.metavar, default=None, help=option.help)
        parser.addini(option.ini_name, f"the same as {option.flag}", default=None)


def _dest(option: Option) -> str:
    return f"jevbench_{option.name.replace('-', '_')}"


def given(config: pytest.Config, name: str) -> tuple[str | None, str]:
    """Return an option's text and where it came from; (default, "") when nobody gave it."""
    option = BY_NAME[name]
    value = config.getoption(_dest(option))
    if value is not None:
        return str(value), option.flag
    value = config.getini(option.ini_name)
    if value is not None and value != "":
        return str(value), f"{option.ini_name} in {config.inipath.name if config.inipath else 'the ini file'}"
    if option.environment and os.environ.get(option.environment):
        return os.environ[option.environment], f"the variable {option.environment}"
    return option.default, ""


def typed(config: pytest.Config, name: str) -> str | None:
    """Return what was given for an option on the command line (`addopts` counts), else None."""
    value = config.getoption(_dest(BY_NAME[name]))
    return None if value is None else str(value)


def flag(config: pytest.Config, name: str) -> bool:
    """Return a yes-or-no option. Raises UsageError for anything else."""
    value, origin = given(config, name)
    if value not in ("yes", "no"):
        raise pytest.UsageError(f"{origin}={value!r} cannot be used: expected yes or no")
    return value == "yes"


def text(config: pytest.Config, name: str) -> str | None:
    """Return an option's text, or its default."""
    return given(config, name)[0]


def names(config: pytest.Config, name: str) -> list[str]:
    """Return a comma-separated option as a list. Raises UsageError when it is given but empty."""
    value, origin = given(config, name)
    if value is None:
        return []
    found = [part.strip() for part in value.split(",") if part.strip()]
    if not found:
        raise pytest.UsageError(f"{origin} is empty: give one or more names, separated by commas")
    return found


def number(
    config: pytest.Config, name: str, kind: Callable[[str], Any], accept: Callable[[Any], bool], legal: str
) -> Any:
    """Return a numeric option, None when it has no default. Raises UsageError that names the legal values."""
    value, origin = given(config, name)
    if value is None:
        return None
    try:
        found = kind(value)
    except ValueError:
        found = None
    if found is None or not accept(found):
        raise pytest.UsageError(f"{origin}={value!r} cannot be used: expected {legal}")
    return found


@dataclass(frozen=True, slots=True)
class Settings:
    """The options that judge and report, checked; the model's are read when it is needed."""

    tolerance: float
    min_n: int | None
    bootstrap: int
    record: bool
    card: str | None
    cache: str


@dataclass(frozen=True, slots=True)
class Connection:
    """The options of the client, checked."""

    timeout: float
    retries: int
    per_replica: int
    max_requests: int | None
    min_interval: float


def connection(config: pytest.Config) -> Connection:
    """Read and check the options of the client. Raises UsageError."""
    return Connection(
        timeout=number(config, "timeout", float, lambda s: 0 < s < 1e6, "seconds above 0"),
        retries=number(config, "retries", int, lambda n: 0 <= n <= 100, "an integer from 0 to 100"),
        per_replica=number(config, "per-replica", int, lambda n: 1 <= n <= 1000, "an integer from 1 to 1000"),
        max_requests=number(config, "max-requests", int, lambda n: n >= 1, "an integer from 1"),
        min_interval=number(config, "min-interval", float, lambda s: 0 <= s < 1e6, "seconds from 0"),
    )


def check_card(config: pytest.Config) -> None:
    """Raise UsageError when the card could not be written where it is asked for."""
    value, origin = given(config, "card")
    if value is None:
        return
    path = config.invocation_params.dir / value
    if path.is_dir():
        raise pytest.UsageError(f"{origin}={value}: this is a folder; give a file, such as {value}/card.json")
    above = next(each for each in path.parents if each.exists())
    if not above.is_dir():
        raise pytest.UsageError(f"{origin}={value}: {above} is a file, so nothing can be written under it")


def settings(config: pytest.Config) -> Settings:
    """Read and check the options. Raises UsageError."""
    violations, origin = given(config, "violations")
    if violations not in ("fail", "record"):
        raise pytest.UsageError(f"{origin}={violations!r} cannot be used: expected fail or record")
    for name in ("card", "cache"):
        value, origin = given(config, name)
        if value is not None and not value.strip():
            raise pytest.UsageError(f"{origin} is empty: give a path, or leave the option out")
    connection(config)
    check_card(config)
    return Settings(
        tolerance=number(config, "tolerance", float, lambda x: 0 <= x <= 1, "a number from 0 to 1"),
        min_n=number(config, "min-n", int, lambda n: n >= 1, "an integer from 1"),
        bootstrap=number(config, "bootstrap", int, lambda n: 0 <= n <= 1_000_000, "an integer from 0 to 1000000"),
        record=violations == "record",
        card=text(config, "card"),
        cache=text(config, "cache") or ".jevbench-cache",
    )
