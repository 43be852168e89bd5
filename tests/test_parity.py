"""Our core and the peer, package `jevbench` 0.1.0: the same answers give the same numbers.

All suites and all models are compared by `benchmarks/parity.py`; here are those that show the most in seconds.
"""

from __future__ import annotations

import pytest

from peer import DISTINCT, MODELS, SLOW, Comparison, SharedModel, compare, run_both, run_ours, run_theirs

FAST = [name for name in MODELS if name not in SLOW]


def check(found: Comparison) -> None:
    """Fail with everything that differs."""
    assert found.problems == []
    assert found.outcomes > found.judged > 0
    # The slack of 1e-9 only ever forgives: no verdict is stricter than the peer's.
    assert [line for line in found.on_tolerance if "violated False" not in line] == []


@pytest.mark.parametrize("model", FAST)
def test_every_model_gets_the_peers_numbers_on_the_examples(model: str) -> None:
    check(run_both("examples", model))


def test_a_model_with_known_defects_gets_the_peers_numbers() -> None:
    found = run_both("jevbench-mini", "luce-biased")

    check(found)
    assert found.distinct == (DISTINCT["jevbench-mini"], DISTINCT["jevbench-mini"])
    assert found.judged == 1_200
    assert found.on_tolerance == []
    assert found.overall[0] == pytest.approx(found.overall[1], abs=1e-12)


def test_answers_of_two_decimals_differ_from_the_peer_on_the_tolerance_only() -> None:
    found = run_both("jevbench-mini", "two-decimals")

    check(found)
    assert found.on_tolerance, "two decimals should land on the tolerance"
    assert found.verdicts == len(found.on_tolerance)
    assert found.flips == len(found.on_tie)


def test_answers_that_hang_on_order_and_batch_and_often_tie_flip_as_the_peers_do() -> None:
    found = run_both("jevbench-mini", "order-and-batch")

    check(found)
    assert found.flips == 0


def test_refused_requests_leave_the_same_relations_unscored_as_in_the_peer() -> None:
    found = run_both("jevbench-mini", "refusing-2.5%")

    check(found)
    assert found.judged < 1_200
    assert 0 < found.incomplete < 50, "coverage should lie on both sides of what a relation needs"
    assert found.overall == (None, None)


def test_the_comparison_sees_two_models_apart() -> None:
    ours = run_ours("examples", SharedModel(MODELS["luce"]()))
    theirs = run_theirs("examples", SharedModel(MODELS["luce-biased"]()))

    found = compare("examples", "two models", ours, theirs)

    assert found.deviation > 0.01
    assert found.verdicts > 0
    assert found.flips > 0
    assert found.scores > 0.01
    for what in ("source output of", ": deviation ", ": violated ", ": flip ", "overall: ", "checks.", "graded."):
        assert any(what in problem for problem in found.problems), what


def test_the_comparison_sees_a_request_that_only_one_side_was_refused() -> None:
    ours = run_ours("examples", SharedModel(MODELS["refusing-6%"]()))
    theirs = run_theirs("examples", SharedModel(MODELS["luce-biased"]()))

    found = compare("examples", "one refused", ours, theirs)

    for what in ("not judged by us", "an outcome only theirs", "incomplete: "):
        assert any(what in problem for problem in found.problems), what
