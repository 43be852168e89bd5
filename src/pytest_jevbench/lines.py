"""Reading JSON Lines files so that every error names its file and line."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .errors import JevbenchError, show
from .wire import RepeatedKeyError, load_json


def read_bytes(path: Path, error: type[JevbenchError], *, unzipped: bool = True) -> bytes:
    """Return a file's bytes, unzipped when it ends in `.gz`. Raises `error` for a missing or broken file."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if unzipped and path.suffix == ".gz" else data
    except FileNotFoundError:
        raise error("there is no such file", str(path)) from None
    except (OSError, EOFError, zlib.error) as broken:
        raise error("the file cannot be read", str(path), str(broken)) from None


def decode(line: bytes, where: str, error: type[JevbenchError], *, whole: bool = False) -> Any:
    """Parse a line, or a whole file. Raises `error` at `where` when it is no JSON or has a key twice."""
    try:
        return load_json(line.decode())
    except UnicodeDecodeError as broken:
        raise error("this is not UTF-8", where, f"byte {line[broken.start]:#04x}") from None
    except json.JSONDecodeError as broken:
        raise error(
            f"this is no JSON: {broken.msg}",
            f"{where}:{broken.lineno}:{broken.colno}" if whole else f"{where}:{broken.colno}",
            show(broken.doc[max(0, broken.pos - 20) : broken.pos + 20]),
        ) from None
    except RepeatedKeyError as repeated:
        raise error(
            f"the key {str(repeated)!r} stands twice in one object", where, hint="Keep one of the two."
        ) from None
    except (ValueError, RecursionError) as broken:
        raise error("this is no usable JSON", where, str(broken)[:120]) from None


def objects(path: Path, data: bytes, error: type[JevbenchError]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (`file:line`, object) for each line that is not blank. Raises `error` for a line that is no object."""
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        value = decode(line, where, error)
        if not isinstance(value, dict):
            raise error("the line is no JSON object", where, show(value))
        yield where, value
