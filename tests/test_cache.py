"""Stores keep answers of one model: by key, over runs, intact, and never anybody else's."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jevbench.cache import BATCH, FILE, MemoryStore, SqliteStore, Store
from pytest_jevbench.errors import SettingError

MakeStore = Callable[[], Store]


def opened(folder: Path, name: str = "jev", model_id: str = "jev-latest", revision: str = "") -> SqliteStore:
    return SqliteStore(folder, name, model_id, revision)


def body(store: Store, key: str) -> str | None:
    entry = store.get(key)
    return None if entry is None else entry.body


def rows(folder: Path, query: str = "SELECT count(*) FROM answers") -> Any:
    """Look into the file past the store."""
    with closing(sqlite3.connect(folder / FILE)) as database:
        found = database.execute(query).fetchone()[0]
        database.commit()
        return found


def tamper(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / FILE)) as database:
        assert database.execute(statement).rowcount > 0
        database.commit()


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else opened(tmp_path)
    yield made
    made.close()


# Both stores


def test_a_store_returns_what_was_put(store: Store) -> None:
    store.put("k:0", '{"answers": {}}')
    store.put("k:1", "ü \\ud800 🐦")
    assert body(store, "k:0") == '{"answers": {}}'
    assert body(store, "k:1") == "ü \\ud800 🐦"
    assert store.get("k:2") is None


def test_a_store_says_when_an_answer_was_given(store: Store) -> None:
    before = time.time()
    store.put("k", "x")
    entry = store.get("k")
    assert entry is not None
    assert before <= entry.asked_at <= time.time()


def test_a_later_answer_replaces_an_earlier_one(store: Store) -> None:
    store.put("k", "first")
    store.put("k", "second")
    assert body(store, "k") == "second"


def test_what_is_set_aside_is_counted_and_no_longer_seen(store: Store) -> None:
    for n in range(5):
        store.put(f"k{n}", "old")
    assert store.set_aside() == 5
    assert [body(store, f"k{n}") for n in range(5)] == [None] * 5
    store.put("k0", "new")
    assert body(store, "k0") == "new"
    assert store.set_aside() == 1
    assert store.set_aside() == 0


# Memory


def test_a_memory_store_shares_nothing_with_another() -> None:
    one, other = MemoryStore(), MemoryStore()
    one.put("k", "x")
    one.close()
    assert other.get("k") is None


# SQLite


@settings(deadline=None, max_examples=10)
@given(
    kept=st.dictionaries(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")), max_size=100)
)
def test_whatever_is_put_is_read_again_by_the_next_run(
    tmp_path_factory: pytest.TempPathFactory, kept: dict[str, str]
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    first = opened(folder)
    for key, text in kept.items():
        first.put(key, text)
    assert {key: body(first, key) for key in kept} == kept
    first.close()
    second = opened(folder)
    assert {key: body(second, key) for key in kept} == kept
    second.close()


def test_the_time_of_an_answer_survives_the_run(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.put("k", "x")
    entry = first.get("k")
    first.close()
    second = opened(tmp_path)
    assert second.get("k") == entry
    second.close()


def test_the_folder_is_made_and_kept_out_of_version_control(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    opened(folder).close()
    assert (folder / FILE).exists()
    assert (folder / ".gitignore").read_text() == "*\n"


def test_a_gitignore_of_the_user_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine\n")
    opened(tmp_path).close()
    assert (tmp_path / ".gitignore").read_text() == "mine\n"


def test_closing_leaves_one_file_that_can_be_copied(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.put("k", "x")
    store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".gitignore", FILE]


def test_answers_are_written_in_batches_and_the_rest_on_closing(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for n in range(BATCH - 1):
        store.put(f"k{n}", "x")
    assert rows(tmp_path) == 0
    store.put("one more", "x")
    assert rows(tmp_path) == BATCH
    store.put("last", "x")
    assert rows(tmp_path) == BATCH
    assert body(store, "last") == "x"
    store.close()
    assert rows(tmp_path) == BATCH + 1


def test_a_slow_run_does_not_hold_answers_back_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_jevbench.cache.LONGEST_WAIT", 0.01)
    store = opened(tmp_path)
    time.sleep(0.02)
    store.put("k", "x")
    assert rows(tmp_path) == 1
    store.close()


def test_closing_twice_does_no_harm(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.put("k", "x")
    store.close()
    store.close()


@pytest.mark.parametrize(
    "other",
    [("jev2", "jev-latest", ""), ("jev", "jev-7", ""), ("jev", "jev-latest", "r2"), ("jev", "", "jev-latest")],
)
def test_answers_of_another_model_are_not_seen(tmp_path: Path, other: tuple[str, str, str]) -> None:
    mine, theirs = opened(tmp_path), opened(tmp_path, *other)
    mine.put("k", "mine")
    theirs.put("k", "theirs")
    mine.close()
    theirs.close()
    mine, theirs = opened(tmp_path), opened(tmp_path, *other)
    assert (body(mine, "k"), body(theirs, "k")) == ("mine", "theirs")
    assert mine.set_aside() == 1
    assert (body(mine, "k"), body(theirs, "k")) == (None, "theirs")
    mine.close()
    theirs.close()


def test_what_is_set_aside_stays_aside_in_later_runs(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.put("old", "x")
    first.put("both", "old")
    assert first.set_aside() == 2
    first.put("both", "new")
    first.close()
    second = opened(tmp_path)
    assert (body(second, "old"), body(second, "both")) == (None, "new")
    second.close()


def test_two_runs_that_set_aside_at_once_begin_one_epoch(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    one.put("k", "old")
    assert one.set_aside() == 1
    one.put("k", "new")
    other.set_aside()
    one.close()
    assert body(other, "k") == "new"
    other.close()


def test_runs_see_what_others_have_written(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    one.put("k", "x")
    assert other.get("k") is None
    one.close()
    assert body(other, "k") == "x"
    other.close()


# Damage


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Return a folder with a hundred kept answers."""
    store = opened(tmp_path)
    for n in range(100):
        store.put(f"k{n}", f'{{"answers": {{"n": {n}}}, "padding": "{"x" * 200}"}}')
    store.close()
    return tmp_path


@pytest.mark.parametrize(
    "damage",
    [
        "body = replace(body, 'answers', 'answerz')",
        "body = ''",
        "body = CAST(x'fffe7b' AS TEXT)",
        "body = x'00ff'",
        "body = NULL",
        "checksum = x'00'",
        "checksum = NULL",
    ],
)
def test_an_answer_that_does_not_fit_its_checksum_counts_as_absent(kept: Path, damage: str) -> None:
    tamper(kept, f"UPDATE answers SET {damage} WHERE key LIKE '%:k7'")  # noqa: S608 - the list above
    store = opened(kept)
    assert store.get("k7") is None
    assert body(store, "k8") is not None
    store.put("k7", "again")
    store.close()
    store = opened(kept)
    assert body(store, "k7") == "again"
    store.close()


def refused(make: Callable[[], Any]) -> SettingError:
    """Return the error of a cache that cannot be used, having looked at what every such error says."""
    with pytest.raises(SettingError, match="the cache cannot be used") as caught:
        make()
    assert "--jev-cache=DIR" in caught.value.hint
    assert "--jev-cache=memory" in caught.value.hint
    assert len(str(caught.value).splitlines()) == 1
    return caught.value


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"this is no database, " * 100)
    error = refused(lambda: opened(tmp_path))
    assert error.where == str(tmp_path / FILE)
    assert "Remove the file" in error.hint
    assert (tmp_path / FILE).read_bytes().startswith(b"this is no database")


def test_a_database_of_another_shape_is_named(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.execute("CREATE TABLE models (colour TEXT)")
    assert refused(lambda: opened(tmp_path)).where == str(tmp_path / FILE)


def test_a_file_damaged_in_the_middle_is_named_when_it_is_met(kept: Path) -> None:
    content = bytearray((kept / FILE).read_bytes())
    content[4096 * 3 :] = b"\xa5" * (len(content) - 4096 * 3)
    (kept / FILE).write_bytes(content)

    def use() -> None:
        store = opened(kept)
        try:
            for n in range(100):
                store.get(f"k{n}")
        finally:
            store.close()

    assert refused(use).where == str(kept / FILE)


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    assert str(tmp_path / "cache") in refused(lambda: opened(tmp_path / "cache")).where
    assert str(tmp_path / "cache") in refused(lambda: opened(tmp_path / "cache" / "deeper")).where
    assert (tmp_path / "cache").read_text() == "a file"


def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    assert refused(lambda: opened(tmp_path)).where == str(tmp_path / FILE)


def test_an_unusable_file_is_not_kept_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open connection would lock the file on Windows, and is a ResourceWarning from Python 3.13 on."""
    made: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def recording(*args: Any, **settings: Any) -> sqlite3.Connection:
        made.append(connect(*args, **settings))
        return made[-1]

    monkeypatch.setattr("pytest_jevbench.cache.sqlite3.connect", recording)
    (tmp_path / FILE).write_bytes(b"this is no database, " * 100)
    refused(lambda: opened(tmp_path))
    assert len(made) == 1
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        made[0].execute("SELECT 1")


# Several processes


def write_many(folder: str, who: int, n: int) -> None:
    """Write answers, half of them under keys that every process writes. Runs in a process of its own."""
    store = opened(Path(folder))
    for i in range(n):
        store.put(f"own {who} {i}", f"{who} {i}")
        store.put(f"shared {i}", f"shared {i}")
        assert body(store, f"shared {i}") == f"shared {i}"
    store.close()


def write_and_die(folder: str, n: int) -> None:
    """Write answers and end without closing. Runs in a process of its own."""
    store = opened(Path(folder))
    for i in range(n):
        store.put(f"k{i}", f"{i}")
    os._exit(9)


def spawn(*calls: tuple[Any, ...]) -> list[int | None]:
    """Run calls in processes of their own, all at once, and return their exit codes."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=function, args=args) for function, *args in calls]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    return [process.exitcode for process in processes]


def test_several_processes_that_write_at_once_leave_an_intact_file(tmp_path: Path) -> None:
    opened(tmp_path).close()
    writers = 3
    assert spawn(*[(write_many, str(tmp_path), who, 200) for who in range(writers)]) == [0] * writers
    assert rows(tmp_path, "PRAGMA integrity_check") == "ok"
    assert rows(tmp_path) == 200 * writers + 200
    store = opened(tmp_path)
    for i in range(200):
        assert body(store, f"shared {i}") == f"shared {i}"
        assert [body(store, f"own {who} {i}") for who in range(writers)] == [f"{who} {i}" for who in range(writers)]
    store.close()


def test_a_process_that_dies_loses_less_than_a_batch(tmp_path: Path) -> None:
    n = 10 * BATCH + BATCH // 2
    assert spawn((write_and_die, str(tmp_path), n)) == [9]
    assert rows(tmp_path, "PRAGMA integrity_check") == "ok"
    store = opened(tmp_path)
    kept = [i for i in range(n) if body(store, f"k{i}") == f"{i}"]
    store.close()
    assert kept == list(range(len(kept)))
    assert len(kept) > n - BATCH
