"""`pytest-jevbench <command>`: everything that works on files rather than on a test run.

Exit codes: 0, 1 (the answer is no), 2 (the command was misused, or a file cannot be read).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

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


def _show(options: argparse.Namespace) -> int:
    from .card import Card
    from .report import terminal

    card = Card.load(options.card)
    if {options.tolerance, options.min_n, options.bootstrap} != {None}:
        card = card.judged_again(options.tolerance, options.min_n, options.bootstrap)
    table = card.table(options.level)
    print(f"{card.suite.label}, model {card.model.name}, {card.created}")
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
