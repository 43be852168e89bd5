"""What a pytest session keeps in `config.stash`: its one client, and the session object when there is a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import options

if TYPE_CHECKING:
    from .client import Client
    from .session import JevSession

CLIENT = pytest.StashKey["Client"]()
SESSION = pytest.StashKey["JevSession | None"]()


def connect(config: pytest.Config) -> Client:
    """Return the session's client, finding the model on first use. Raises UsageError."""
    client = config.stash.get(CLIENT, None)
    if client is None:
        from .provider import make_client

        client = config.stash[CLIENT] = make_client(config)
        config.add_cleanup(client.close)
    return client


def start_session(config: pytest.Config, *, items: bool) -> JevSession:
    """Make the session of the plan that the options name, and register its hooks. Raises UsageError."""
    from .xdist import make_session

    session = config.stash[SESSION] = make_session(config, items=items)
    config.pluginmanager.register(session, "jevbench-session")
    return session


def current_session(config: pytest.Config) -> JevSession | None:
    """Return the session, starting one for the fixtures when only the ini file names a plan; None without a plan."""
    if SESSION not in config.stash:
        named = any(options.given(config, name)[0] for name in options.PLANS)
        config.stash[SESSION] = start_session(config, items=False) if named else None
    return config.stash[SESSION]
