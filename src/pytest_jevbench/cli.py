"""`pytest-jevbench <command>`: everything that works on files rather than on a test run.

Exit codes: 0, 1 (the answer is no), 2 (the command was misused, or a file cannot be read).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from . import __version__
from .errors import JevbenchError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
    except JevbenchError as error:
        print(f"pytest-jevbench: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pytest-jevbench", description="Work on suites and coherence cards.")
    parser.add_argument("--version", action="version", version=f"pytest-jevbench {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    relations = commands.add_parser("relations", help="list the relations by dimension and group")
    relations.add_argument("-v", "--verbose", action="store_true", help="add form, edits, check, variants and source")
    relations.add_argument("--markdown", action="store_true", help="print docs/relations.md")
    relations.set_defaults(run=_relations)

    check = commands.add_parser("check", help="ask a model one small request and read every answer")
    named = check.add_mutually_exclusive_group(required=True)
    named.add_argument("--url", help="endpoint of POST /v1/systemone")
    named.add_argument("--callable", metavar="MODULE:NAME", help="a function fn(state, questions) -> answers")
    named.add_argument("--embedded", metavar="NAME", help="uniform, random, luce, luce-biased or sparrow")
    check.add_argument("--model-id", default="jev-latest", metavar="NAME", help="the request's `model` field")
    check.add_argument("--api-key-env", default="JEVBENCH_API_KEY", metavar="NAME", help="where the bearer token is")
    check.add_argument(
        "--timeout", type=float, default=60.0, metavar="S", help="seconds for the answer (default: 60)"
    )
    check.set_defaults(run=_check)

    estimate = commands.add_parser("estimate", help="count the requests a run would send")
    planned = estimate.add_mutually_exclusive_group(required=True)
    planned.add_argument("--suite", metavar="NAME", help="a suite, a folder, or upstream:NAME")
    planned.add_argument("--cases", type=Path, metavar="FILE", help="own cases")
    for selection in ("domains", "dimensions", "groups", "relations"):
        estimate.add_argument(f"--{selection}", type=_listed, default=[], metavar="A,B")
    estimate.add_argument("--seed", type=int, default=0, metavar="N")
    estimate.add_argument("--draws", type=_positive, default=1, metavar="N")
    estimate.add_argument("--rewrites", type=Path, metavar="BANK")
    estimate.set_defaults(run=_estimate)

    freeze = commands.add_parser("freeze", help="freeze the plan of a folder with cases.jsonl (and rewrites.jsonl)")
    freeze.add_argument("folder", type=Path, metavar="DIR")
    freeze.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the draws (default: 0)")
    freeze.add_argument("--audited-only", action="store_true", help="use only rewrites that an audit confirmed")
    freeze.add_argument(
        "--sample",
        type=_positive,
        metavar="N",
        help="instead, draw a sample of the frozen suite: each relation on N cases of each domain",
    )
    freeze.add_argument("--out", type=Path, metavar="DIR", help="where the sample goes (default: DIR-mini)")
    freeze.set_defaults(run=_freeze)

    rewrite = commands.add_parser("rewrite", help="look at a rewrite bank")
    counting = rewrite.add_subparsers(metavar="ACTION", required=True).add_parser("stats", help="count it by kind")
    counting.add_argument("bank", type=Path, metavar="BANK")
    counting.set_defaults(run=_rewrite_stats)

    suites = commands.add_parser("suites", help="list the suites, or export one to a folder of its own")
    suites.set_defaults(run=_suites)
    exporting = suites.add_subparsers(metavar="ACTION").add_parser("export", help="write a suite to a new folder")
    exporting.add_argument("name", metavar="NAME")
    exporting.add_argument("folder", type=Path, metavar="DIR")
    exporting.set_defaults(run=_export)

    cache = commands.add_parser("cache", help="look at the kept answers, or remove old ones")
    doings = cache.add_subparsers(metavar="ACTION", required=True)
    stats = doings.add_parser("stats", help="count the kept answers by model")
    prune = doings.add_parser("prune", help="remove answers that were set aside, and those older than --days")
    for action in (stats, prune):
        action.add_argument("folder", type=Path, nargs="?", default=Path(".jevbench-cache"), metavar="DIR")
    prune.add_argument("--days", type=_from_zero, metavar="N", help="also remove answers older than N days")
    stats.set_defaults(run=_cache_stats)
    prune.set_defaults(run=_cache_prune)

    serve = commands.add_parser("serve", help="serve an embedded model at POST /v1/systemone (extra `server`)")
    serve.add_argument(
        "--embedded", required=True, metavar="NAME", help="uniform, random, luce, luce-biased, sparrow"
    )
    serve.add_argument("--host", default="127.0.0.1")
    serve.add_argument("--port", type=_port, default=8000)
    serve.add_argument(
        "--latency", type=_from_zero, default=0.0, metavar="S", help="add this many seconds to each answer"
    )
    serve.set_defaults(run=_serve)

    card = commands.add_parser("card", help="read saved coherence cards")
    actions = card.add_subparsers(metavar="ACTION", required=True)
    show = actions.add_parser("show", help="show a card's scores; no request is sent")
    show.add_argument("card", help="a card, such as .jevbench-cache/last-card.json")
    show.add_argument("--level", default="dimension", metavar="LEVEL", help="dimension, group, relation or domain")
    show.add_argument("--tolerance", type=float, metavar="X", help="judge the same answers again at this tolerance")
    show.add_argument("--min-n", type=int, metavar="N", help="score relations from this many tests on")
    show.add_argument("--bootstrap", type=int, metavar="N", help="draw this many bootstrap samples, 0 for none")
    show.set_defaults(run=_show)
    schema = actions.add_parser("schema", help="print the JSON Schema of cards")
    schema.set_defaults(run=_schema)
    return parser


def _relations(options: argparse.Namespace) -> int:
    from .report import catalogue

    if options.markdown:
        sys.stdout.write(catalogue.markdown())
    else:
        print("\n".join(catalogue.tree(verbose=options.verbose)))
    return 0


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _check(options: argparse.Namespace) -> int:
    from .api import check
    from .errors import AskError
    from .model import Model, embedded, find_callable, from_callable

    model: Model
    if options.url:
        from .model.systemone import SystemOne

        key = os.environ.get(options.api_key_env, "")
        model = SystemOne(options.url, options.model_id, api_key=key, timeout=options.timeout)
    elif options.callable:
        sys.path.insert(0, "")
        model = from_callable(find_callable(options.callable))
    else:
        model = embedded(options.embedded)
    try:
        found = check(model)
    except AskError as error:
        print(f"the model cannot be used ({type(error).__name__})\n{error}", file=sys.stderr)
        return 1
    named = f", answered as {found.answered_as}" if found.answered_as else ""
    print(f"{found.model} can be used{named}: {len(found.answers)} answers in {found.seconds:.2f} s")
    for key, distribution in found.answers.items():
        print(f"  {key}: {', '.join(f'{outcome} {p:.3f}' for outcome, p in distribution.items())}")
    for warning in found.warnings:
        print(f"warning: {warning}")
    return 0


def _estimate(options: argparse.Namespace) -> int:
    from .api import estimate

    found = estimate(
        options.suite,
        cases=options.cases,
        domains=options.domains,
        dimensions=options.dimensions,
        groups=options.groups,
        relations=options.relations,
        seed=options.seed,
        draws=options.draws,
        rewrites=options.rewrites,
    )
    print(f"{found.tests:,} tests on {found.cases:,} cases: {found.requests:,} distinct requests")
    return 0


def _from_zero(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0")
    return number


def _port(text: str) -> int:
    number = int(text) if text.isdecimal() else -1
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port from 0 to 65535")
    return number


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer from 1")
    return number


def _freeze(options: argparse.Namespace) -> int:
    from .freezing import freeze, freeze_sample

    folder: Path = options.folder
    if options.sample is None:
        suite = freeze(folder, seed=options.seed, audited_only=options.audited_only)
    else:
        out = options.out or folder.with_name(f"{folder.resolve().name}-mini")
        suite = freeze_sample(folder, out, options.sample)
    print(f"{suite.folder}: {len(suite.plan.tests):,} tests of {len(suite.plan.cases):,} cases")
    print(f"plan text SHA-256 {suite.plan_sha256}")
    return 0


def _rewrite_stats(options: argparse.Namespace) -> int:
    from .card import aligned
    from .rewrites import count_rewrites, read_rewrites

    rows = [["kind", "candidates", "accepted", "usable", "confirmed", "rejected by audit"]]
    for each in count_rewrites(read_rewrites(options.bank)):
        numbers = (each.candidates, each.accepted, each.usable, each.confirmed, each.rejected)
        rows.append([each.kind, *map(str, numbers)])
    print(aligned(rows))
    return 0


def _suites(options: argparse.Namespace) -> int:
    from .suite import UPSTREAM, load_suite, suite_names, upstream_names

    del options
    for name in [*suite_names(), *(UPSTREAM + each for each in upstream_names())]:
        suite = load_suite(name)
        print(
            f"{name:<24} {len(suite.plan.tests):>6,} tests  {len(suite.plan.cases):>4,} cases  "
            f"edition {suite.edition}, min_n {suite.min_n}"
        )
    return 0


def _export(options: argparse.Namespace) -> int:
    from .freezing import export

    suite = export(options.name, options.folder)
    print(f"{suite.folder}: {len(suite.plan.tests):,} tests of {len(suite.plan.cases):,} cases")
    return 0


def _cache_stats(options: argparse.Namespace) -> int:
    from .cache import kept_by_model
    from .run import when

    for row in kept_by_model(options.folder):
        named = f"{row.name}{f' ({row.revision})' if row.revision else ''}"
        span = (
            f", {when(row.oldest)} to {when(row.newest)}" if row.oldest is not None and row.newest is not None else ""
        )
        print(f"{named}: {row.answers:,} answers{span}; {row.set_aside:,} set aside; {row.megabytes:.1f} MB")
    return 0


def _cache_prune(options: argparse.Namespace) -> int:
    from .cache import prune

    print(f"{prune(options.folder, options.days):,} answers removed")
    return 0


def _serve(options: argparse.Namespace) -> int:
    from .server import serve

    serve(options.embedded, options.host, options.port, options.latency)
    return 0


def _show(options: argparse.Namespace) -> int:
    from .card import Card
    from .report import terminal

    card = Card.load(options.card)
    if {options.tolerance, options.min_n, options.bootstrap} != {None}:
        card = card.judged_again(options.tolerance, options.min_n, options.bootstrap)
    table = card.table(options.level)
    print(f"{card.ran.label}, model {card.model.name}, {card.created}")
    print("\n".join(terminal.overall(card)))
    print()
    print(table)
    for line in [
        *terminal.unscored(card),
        *terminal.errors(card),
        *terminal.partial(card),
        *terminal.warnings(card.warnings),
    ]:
        print(line)
    return 0


def _schema(options: argparse.Namespace) -> int:
    from .card import Card

    del options
    print(json.dumps(Card.model_json_schema(), indent=1))
    return 0
