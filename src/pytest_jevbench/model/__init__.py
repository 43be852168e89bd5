"""Who answers: servers, functions in this process, and the embedded reference models."""

from __future__ import annotations

from .base import Model, Reply, Request
from .embedded import EMBEDDED, embedded
from .function import find_callable, from_callable

__all__ = ["EMBEDDED", "Model", "Reply", "Request", "embedded", "find_callable", "from_callable"]
