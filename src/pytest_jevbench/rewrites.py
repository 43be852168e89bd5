"""The bank of judged rewrites: natural paraphrases, negations, descriptions and translations, frozen in a file.

One line is a candidate with its verdict: `kind` (paraphrase, negation, description, translate:<language>), `source`,
`rewrite` (null when none was found), `accepted`, `audited` (true, false, or null when nobody looked) and what else
its author recorded. A `translate:` entry rewrites a whole question: its source is the JSON text of
`{"instructions": ..., "criteria": ...}` and its rewrite the same object in the other language.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import SuiteError
from .lines import objects, read_bytes
from .wire import problems

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One candidate of the bank. `audited` is None where nobody looked."""

    kind: str
    source: str
    rewrite: Any
    accepted: bool
    audited: bool | None

    def usable(self, *, audited_only: bool = False) -> bool:
        """Say whether runs may use it: accepted, present, not rejected by an audit (or confirmed by one)."""
        if not self.accepted or self.rewrite is None:
            return False
        return self.audited is True if audited_only else self.audited is not False


@cache
def _adapter() -> TypeAdapter[Any]:
    from pydantic import BaseModel, ConfigDict, TypeAdapter

    class Line(BaseModel):
        model_config = ConfigDict(strict=True)
        kind: str
        source: str
        rewrite: str | dict[str, Any] | None
        accepted: bool
        audited: bool | None = None

    return TypeAdapter(Line)


def read_rewrites(path: Path) -> list[Rewrite]:
    """Read a bank. Raises SuiteError, with file and line, for the first line that is no rewrite."""
    return list(_parse(path, read_bytes(path, SuiteError)))


def _parse(path: Path, data: bytes) -> Iterator[Rewrite]:
    from pydantic import ValidationError

    for where, raw in objects(path, data, SuiteError):
        try:
            line = _adapter().validate_python(raw)
        except ValidationError as broken:
            field, message, found = problems(broken)[0]
            raise SuiteError(message, f"{where}: {field}", found) from None
        yield Rewrite(line.kind, line.source, line.rewrite, line.accepted, line.audited)
