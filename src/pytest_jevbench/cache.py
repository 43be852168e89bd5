"""Where answers are kept between tests and runs: one SQLite file, or the memory of this run.

A row is found by model (name, revision, id), request and repeat. Answers belong to an epoch of their model: when the
model turns out to be another one behind the same name, its epoch moves on and older rows are no longer seen.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from .errors import SettingError
from .model.base import Model

FILE = "answers.sqlite"
BATCH = 64
"""Rows written in one transaction."""
LONGEST_WAIT = 0.02
"""Seconds an answer may wait to be written with others: a killed process loses hardly more than was in flight."""


class Entry(NamedTuple):
    """One kept answer: the JSON text of the reply, and when it was given (seconds since the epoch)."""

    body: str
    asked_at: float


class Store(Protocol):
    """Keeps answers of one model by request key."""

    def get(self, key: str) -> Entry | None:
        """Return what is kept under a key, or None."""
        ...

    def put(self, key: str, body: str) -> None:
        """Keep an answer."""
        ...

    def flush(self) -> None:
        """Write what is pending, so that other processes see it."""
        ...

    def set_aside(self) -> int:
        """Stop seeing everything kept so far; return how many answers that were."""
        ...

    def close(self) -> None:
        """Write what is pending."""
        ...


class MemoryStore:
    """Answers of this run only."""

    def __init__(self) -> None:
        self._kept: dict[str, Entry] = {}

    def get(self, key: str) -> Entry | None:
        """Return what is kept under a key, or None."""
        return self._kept.get(key)

    def put(self, key: str, body: str) -> None:
        """Keep an answer."""
        self._kept[key] = Entry(body, time.time())

    def flush(self) -> None:
        """Nothing is pending."""

    def set_aside(self) -> int:
        """Forget everything."""
        n = len(self._kept)
        self._kept.clear()
        return n

    def close(self) -> None:
        """Nothing is pending."""


SCHEMA = """
CREATE TABLE IF NOT EXISTS models (model TEXT PRIMARY KEY, name TEXT, id TEXT, revision TEXT, epoch INTEGER);
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, model TEXT, epoch INTEGER, asked_at REAL, checksum BLOB, body TEXT
) WITHOUT ROWID;
"""


class SqliteStore:
    """Answers in `FOLDER/answers.sqlite`, shared by runs. Raises SettingError when the file cannot be used."""

    def __init__(self, folder: Path, name: str, model_id: str, revision: str) -> None:
        self.path = folder / FILE
        self._lock = threading.Lock()
        self._pending: dict[str, tuple[str, str, int, float, bytes, str]] = {}
        self._flushed = time.monotonic()
        self._model = hashlib.sha256("\x1f".join((name, revision, model_id)).encode()).hexdigest()[:32]
        with _explaining(self.path), ExitStack() as stack:
            folder.mkdir(parents=True, exist_ok=True)
            ignore = folder / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            self._db = stack.enter_context(
                closing(sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False))
            )
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(SCHEMA)
            self._db.execute(
                "INSERT OR IGNORE INTO models VALUES (?, ?, ?, ?, 0)", (self._model, name, model_id, revision)
            )
            self._epoch: int = self._db.execute(
                "SELECT epoch FROM models WHERE model = ?", (self._model,)
            ).fetchone()[0]
            stack.pop_all()

    def get(self, key: str) -> Entry | None:
        """Return what is kept under a key, or None; a row whose checksum does not fit counts as absent."""
        with self._lock, _explaining(self.path):
            if key in self._pending:
                _, _, _, asked_at, _, body = self._pending[key]
                return Entry(body, asked_at)
            row = self._db.execute(
                "SELECT asked_at, checksum, CAST(body AS BLOB) FROM answers WHERE key = ? AND epoch = ?",
                (self._scoped(key), self._epoch),
            ).fetchone()
        if row is None or row[2] is None or _checksum(row[2]) != row[1]:
            return None
        return Entry(row[2].decode(errors="surrogatepass"), row[0])

    def put(self, key: str, body: str) -> None:
        """Keep an answer; it is written with the next batch."""
        now = time.time()
        with self._lock, _explaining(self.path):
            self._pending[key] = (
                self._scoped(key),
                self._model,
                self._epoch,
                now,
                _checksum(body.encode(errors="surrogatepass")),
                body,
            )
            if len(self._pending) >= BATCH or time.monotonic() - self._flushed > LONGEST_WAIT:
                self._flush()

    def flush(self) -> None:
        """Write what is pending, so that other processes see it."""
        with self._lock, _explaining(self.path):
            self._flush()

    def set_aside(self) -> int:
        """Begin a new epoch of this model; return how many answers are no longer seen."""
        with self._lock, _explaining(self.path):
            self._flush()
            (n,) = self._db.execute(
                "SELECT count(*) FROM answers WHERE model = ? AND epoch = ?", (self._model, self._epoch)
            ).fetchone()
            self._db.execute(
                "UPDATE models SET epoch = epoch + 1 WHERE model = ? AND epoch = ?", (self._model, self._epoch)
            )
            self._epoch = self._db.execute("SELECT epoch FROM models WHERE model = ?", (self._model,)).fetchone()[0]
        return int(n)

    def close(self) -> None:
        """Write what is pending and close the file."""
        with self._lock, _explaining(self.path):
            self._flush()
            self._db.close()

    def _scoped(self, key: str) -> str:
        return f"{self._model}:{key}"

    def _flush(self) -> None:
        if self._pending:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)", list(self._pending.values())
            )
            self._db.execute("COMMIT")
            self._pending.clear()
        self._flushed = time.monotonic()


class Kept(NamedTuple):
    """What the cache keeps of one model; moments in seconds since the epoch."""

    name: str
    revision: str
    answers: int
    set_aside: int
    oldest: float | None
    newest: float | None
    megabytes: float


def kept_by_model(folder: Path) -> list[Kept]:
    """Count what a cache keeps, by model. Raises SettingError when there is none or it cannot be read."""
    with _opened(folder) as db:
        rows = db.execute(
            "SELECT name, revision, sum(a.epoch = m.epoch), sum(a.epoch <> m.epoch), min(asked_at), max(asked_at), "
            "sum(length(body)) / 1e6 "
            "FROM models m JOIN answers a USING (model) GROUP BY model ORDER BY name, revision"
        ).fetchall()
    return [Kept(*row) for row in rows]


def prune(folder: Path, days: float | None = None) -> int:
    """Remove answers that were set aside and those older than `days`; return how many. Raises SettingError."""
    before = -1.0 if days is None else time.time() - 86400 * days
    with _opened(folder) as db:
        removed = db.execute(
            "DELETE FROM answers "
            "WHERE asked_at < ? OR epoch <> (SELECT epoch FROM models WHERE model = answers.model)",
            (before,),
        ).rowcount
        db.execute("VACUUM")
    return int(removed)


@contextmanager
def _opened(folder: Path) -> Iterator[sqlite3.Connection]:
    path = folder / FILE
    if not path.is_file():
        raise SettingError("there is no cache here", str(folder), expected=f"a folder with {FILE}")
    with _explaining(path), closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as db:
        yield db


@contextmanager
def _explaining(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as broken:
        raise SettingError(
            f"the cache cannot be used ({broken})",
            str(path),
            hint="Remove the file, or choose --jev-cache=DIR or --jev-cache=memory.",
        ) from broken


def open_store(folder: Path, model: Model) -> SqliteStore:
    """Open the store of a model's answers in a folder. Raises SettingError when it cannot be used."""
    return SqliteStore(folder, model.name, model.id, model.revision)


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()[:8]
