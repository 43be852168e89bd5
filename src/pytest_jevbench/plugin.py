"""The pytest plugin: options, marks and hooks, each handed on to the module that does the work.

Every pytest run on a machine that has the plugin imports this module, so it imports nothing heavy: httpx, numpy and
pydantic come in with the first jev option.
"""

from __future__ import annotations

import pytest

from . import fixtures, hookspecs, options, state
from .relations import CATALOGUE
from .taxonomy import DIAGNOSTICS, DIMENSIONS


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options (`options` holds them)."""
    options.add(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks a conftest.py may implement (`hookspecs` documents them)."""
    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the marks; with a suite on the command line, start its session."""
    config.addinivalue_line("markers", "jevbench: a test of a coherence suite")
    for relation in CATALOGUE.values():
        config.addinivalue_line("markers", f"{relation.name}: {relation.law}")
    for code in (*DIMENSIONS, DIAGNOSTICS):
        config.addinivalue_line("markers", f"{code}: coherence tests of the dimension {code}")
    config.addinivalue_line("markers", "jevbench_only(relations, domains, tolerance): narrow the fixtures of a test")
    config.pluginmanager.register(fixtures.holder(), "jevbench-fixtures")
    if any(options.typed(config, name) is not None for name in options.PLANS) and not config.option.help:
        state.start_session(config, items=options.flag(config, "items"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Make `-n auto` one worker for each slot of the model."""
    from .xdist import auto_workers

    return auto_workers(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize users' tests over the plan (`fixtures` does it)."""
    fixtures.generate(metafunc)
