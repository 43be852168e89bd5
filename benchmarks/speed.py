"""How fast a run is, as ratios in one session: whole processes, ours beside `jevbench` with the same function.

    python benchmarks/speed.py [--runs 5] [--only a,b,...]

Each command is warmed once, then run in turn with its rival; medians are compared. Bytecode is on. Ratios are ours
divided by theirs; "above bare" means after subtracting a pytest that collects nothing.

a  upstream:jevbench-mini, callable in the process     ours above bare / theirs             at most 0.33
b  upstream:jevbench-240                               ours / theirs, whole process         at most 0.40
av, bv  the same with about 35 % of the tests violated, in fail mode
c  mini over HTTP at 20 ms on 1, 2, 4 replicas         seconds / (requests x latency / n)   at most 1.05 + 1.5 s
d  mini again from a warm cache                        seconds above bare                   at most 1.5
e  peak memory of b                                    MiB                                  below 250
f  CPU a test, 1,200 against 12,000 tests              ratio                                within 20 %
g  mini with -n 2                                      seconds
s  start-up the plugin adds to a bare pytest           ms
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from server import Server, answers, late

MODEL = '''
import hashlib

def answer(state, questions):
    return {key: one(q) for key, q in questions.items()}

def one(q):
    if q["type"] == "noul":
        return {"type": "noul", "noul": 0.5}
    outcomes = list(q["criteria"]) if q["type"] == "choice" else [str(i) for i in range(len(q["criteria"]))]
    return {"type": q["type"], "probabilities": {o: 1 / len(outcomes) for o in outcomes}}

def often_wrong(state, questions):
    """Uniform, except for a share of instructions that sets about 35 % of the tests beyond their tolerance."""
    found = {}
    for key, q in questions.items():
        found[key] = one(q)
        text = f"{q.get('instructions')}{q.get('criteria')}".encode()
        if hashlib.sha256(text).digest()[0] < 64:
            if q["type"] == "noul":
                found[key]["noul"] = 0.8
            else:
                p = found[key]["probabilities"]
                first, *rest = p
                found[key]["probabilities"] = {first: 0.6, **{o: 0.4 / len(rest) for o in rest}}
    return found
'''

THEIRS = """
import sys
import jevbench
import bench_model
model = jevbench.from_callable(getattr(bench_model, sys.argv[1]), name="bench")
report = jevbench.evaluate(model, suite=sys.argv[2], cache=":memory:")
print(report.table("dimension"))
"""


@dataclass(frozen=True)
class Spent:
    """What a process cost: wall seconds, CPU seconds, peak resident MiB, and its exit code."""

    wall: float
    cpu: float
    peak: float
    code: int


def spend(command: Sequence[str], folder: Path) -> Spent:
    """Run a command to its end and measure it."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.perf_counter()
    pid = os.posix_spawn(
        command[0],
        list(command),
        env,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, fd, str(folder / name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for fd, name in ((1, "out.txt"), (2, "err.txt"))
        ],
    )
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - started
    return Spent(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status))


class Bench:
    """The commands in one temporary folder."""

    def __init__(self, folder: Path, runs: int) -> None:
        self.folder, self.runs = folder, runs
        (folder / "bench_model.py").write_text(MODEL)
        (folder / "theirs.py").write_text(THEIRS)
        (folder / "empty").mkdir()
        (folder / "pytest.ini").write_text("[pytest]\n")
        os.chdir(folder)

    def pytest(self, *arguments: str) -> list[str]:
        """Return a pytest command without the plugins that only this environment has."""
        others = (
            "randomly",
            "jev",
            "jevkit",
            "cov",
            "html",
            "metadata",
            "timeout",
            "rerunfailures",
            "anyio",
            "hypothesispytest",
            "cacheprovider",
        )
        return [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            *(part for name in others for part in ("-p", f"no:{name}")),
            *arguments,
        ]

    def ours(self, suite: str, function: str = "answer", *more: str) -> list[str]:
        """Return our command for a suite with a function of this process."""
        return self.pytest(
            f"--jev-callable=bench_model:{function}", f"--jev-suite=upstream:{suite}", "--jev-cache=memory", *more
        )

    def theirs(self, suite: str, function: str = "answer") -> list[str]:
        """Return the rival's command."""
        return [sys.executable, str(self.folder / "theirs.py"), function, suite]

    def medians(self, *commands: list[str]) -> list[Spent]:
        """Warm each command once, then run all in turn; return the median of each."""
        for command in commands:
            warm = spend(command, self.folder)
            if warm.code not in (0, 1, 5):
                raise SystemExit(f"{' '.join(command)}\n{(self.folder / 'err.txt').read_text()}")
        rows = [[spend(command, self.folder) for command in commands] for _ in range(self.runs)]
        return [
            Spent(
                statistics.median(row[i].wall for row in rows),
                statistics.median(row[i].cpu for row in rows),
                statistics.median(row[i].peak for row in rows),
                rows[0][i].code,
            )
            for i in range(len(commands))
        ]


def against(bench: Bench, suite: str, function: str, *, above_bare: bool) -> str:
    """Measure ours beside theirs and bare pytest."""
    bare, ours, theirs = bench.medians(
        bench.pytest("empty"), bench.ours(suite, function), bench.theirs(suite, function)
    )
    cost = ours.wall - bare.wall if above_bare else ours.wall
    return (
        f"bare {bare.wall:.2f} s, ours {ours.wall:.2f} s, theirs {theirs.wall:.2f} s: "
        f"ratio {cost / theirs.wall:.2f}{' above bare' if above_bare else ''}; peak {ours.peak:.0f} MiB"
    )


def over_http(bench: Bench) -> str:
    """Measure mini on replicas with a latency of 20 ms."""
    found = []
    (bare,) = bench.medians(bench.pytest("empty"))
    for n in (1, 2, 4):
        with ExitStack() as stack:
            servers = [stack.enter_context(Server(late(0.02, answers()))) for _ in range(n)]
            urls = ",".join(server.url for server in servers)
            spent = spend(
                bench.pytest(f"--jev-url={urls}", "--jev-suite=upstream:jevbench-mini", "--jev-cache=memory"),
                bench.folder,
            )
        ideal = 1248 * 0.02 / n
        allowed = 1.05 * ideal + 1.5
        over = spent.wall - bare.wall
        found.append(f"{n}: {over:.1f} s above bare, ideal {ideal:.1f}, allowed {allowed:.1f}")
    return "; ".join(found)


def warm_cache(bench: Bench) -> str:
    """Measure mini when every answer is in the cache."""
    command = bench.pytest("--jev-embedded=luce", "--jev-suite=upstream:jevbench-mini", "--jev-violations=record")
    bare, ours = bench.medians(bench.pytest("empty"), command)
    return f"{ours.wall - bare.wall:.2f} s above bare ({bare.wall:.2f} s)"


def memory(bench: Bench) -> str:
    """Measure the peak memory of the large suite."""
    (ours,) = bench.medians(bench.ours("jevbench-240"))
    return f"{ours.peak:.0f} MiB"


def per_test(bench: Bench) -> str:
    """Compare the CPU a test costs in a small and a large run."""
    bare, small, large = bench.medians(bench.pytest("empty"), bench.ours("jevbench-mini"), bench.ours("jevbench-240"))
    a, b = ((each.cpu - bare.cpu) / n * 1000 for each, n in ((small, 1200), (large, 12000)))
    return f"{a:.3f} ms a test in 1,200, {b:.3f} ms in 12,000: ratio {b / a:.2f}"


def workers(bench: Bench) -> str:
    """Measure mini with two workers."""
    one, two = bench.medians(bench.ours("jevbench-mini"), bench.ours("jevbench-mini", "answer", "-n", "2"))
    return f"-n 0 {one.wall:.2f} s, -n 2 {two.wall:.2f} s (a model without latency: workers cannot pay)"


def start_up(bench: Bench) -> str:
    """Measure what the plugin adds to a pytest that does not use it."""
    without, with_it = bench.medians(bench.pytest("-p", "no:jevbench", "empty"), bench.pytest("empty"))
    return f"{1000 * (with_it.wall - without.wall):.0f} ms on {1000 * without.wall:.0f} ms"


CHECKS: dict[str, tuple[str, Callable[[Bench], str]]] = {
    "s": ("start-up added", start_up),
    "a": ("mini", lambda bench: against(bench, "jevbench-mini", "answer", above_bare=True)),
    "av": ("mini, violated", lambda bench: against(bench, "jevbench-mini", "often_wrong", above_bare=True)),
    "b": ("240", lambda bench: against(bench, "jevbench-240", "answer", above_bare=False)),
    "bv": ("240, violated", lambda bench: against(bench, "jevbench-240", "often_wrong", above_bare=False)),
    "c": ("HTTP, 20 ms, replicas", over_http),
    "d": ("warm cache", warm_cache),
    "e": ("peak memory", memory),
    "f": ("CPU a test", per_test),
    "g": ("workers", workers),
}


def main() -> None:
    """Run the checks that were asked for and print a table."""
    parser = argparse.ArgumentParser(
        description=textwrap.dedent(__doc__ or ""), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default=",".join(CHECKS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options.runs)
        for name in options.only.split(","):
            title, run = CHECKS[name]
            print(f"{name:<3} {title:<22} {run(bench)}", flush=True)


if __name__ == "__main__":
    main()
