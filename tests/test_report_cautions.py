"""What takes away from the figures is said, and only where it is so."""

from __future__ import annotations

from pathlib import Path

from analysis.report.cautions import Weight
from buffers import Attempt
from tests.report_buffers import SCRIPTS, collected, controllers, evaluated, made_up, page


def titles(path: Path, **changes) -> dict[str, Weight]:
    return {caution.title: caution.weight for caution in page(path, **changes).cautions}


def said(path: Path, text: str) -> bool:
    return any(text in title for title in titles(path))


def test_a_simulated_executor_is_a_limit_and_a_real_one_is_not(tmp_path: Path) -> None:
    made_up(tmp_path / "simulated", executor="simulated-medium-v1")
    made_up(tmp_path / "real", executor="some-model")
    assert titles(tmp_path / "simulated")["Simulated executor: no language model was run"] is Weight.LIMIT
    assert not said(tmp_path / "real", "Simulated")
    html = page(tmp_path / "real").html.replace(str(tmp_path), "")
    assert "simulated" not in html.split("<main>")[1].split('id="words"')[0].lower()


def test_missing_episodes_are_counted_with_their_reason(tmp_path: Path) -> None:
    buffer = made_up(tmp_path / "buffer", tasks=12, without=[("base", "task-003", 1)])
    lost = Attempt("f" * 32, "eval-1", "made_up", "task-003", 1, "base", "APITimeoutError", "too slow", "")
    buffer.harness.add_attempts([lost])
    told = page(tmp_path / "buffer")
    assert "1 of 48 planned evaluation episodes are infra_missing" in [caution.title for caution in told.cautions]
    assert "APITimeoutError: too slow" in told.html
    assert told.episodes == 48  # the missing one is listed, too


def test_few_tasks_are_a_warning(tmp_path: Path) -> None:
    made_up(tmp_path / "few", tasks=4)
    made_up(tmp_path / "enough", tasks=20, rollouts=1)
    assert said(tmp_path / "few", "Fewer than 20 tasks")
    assert not said(tmp_path / "enough", "Fewer than 20 tasks")


def test_a_learner_that_does_what_was_never_collected_has_weak_support(tmp_path: Path) -> None:
    collected(tmp_path / "buffer")
    evaluated(tmp_path / "buffer", [*SCRIPTS, *controllers(tmp_path, seeds=1)])
    # Untrained controllers draw at random, which the portfolio of sensible scripts seldom does.
    assert said(tmp_path / "buffer", "Weak support for 1 of 1 learned controllers")


def test_learners_without_the_rule_beside_them_are_no_verdict(tmp_path: Path) -> None:
    evaluated(tmp_path / "buffer", ["base", *controllers(tmp_path, seeds=1)])
    told = page(tmp_path / "buffer")
    assert told.headline == "Not known"
    assert any("was not run beside the learners" in caution.title for caution in told.cautions)
    assert any("Support is not known" in caution.title for caution in told.cautions)
