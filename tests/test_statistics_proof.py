"""The proof of the statistics at reduced size; `python -m experiments.statistics_proof` has the full one."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import statistics_proof
from experiments.statistics_proof import (
    NULLS,
    SCENARIOS,
    coverage,
    distance_to_uniform,
    holm_differences,
    null_p,
    proof,
)
from experiments.statistics_proof_config import StatisticsProofConfig
from harness_mdp.errors import ConfigError, InputError

REPEATS = 250
ERROR = 3 * np.sqrt(0.95 * 0.05 / REPEATS)  # three standard errors of a coverage


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_scenarios_have_the_mean_they_say_and_rollouts_that_are_alike(scenario):
    values = scenario.draw(np.random.default_rng(0), (100, 100))
    by_task = values.mean(axis=2)
    assert by_task.mean() == pytest.approx(scenario.mean, abs=4 * by_task.std() / np.sqrt(by_task.size))
    assert scenario.support[0] <= values.min() <= values.max() <= scenario.support[1]
    assert 0.05 < coverage(scenario, 20, repeats=100, draws=50).correlation < 0.6


@pytest.mark.parametrize(("scenario", "n"), [(s, 20) for s in SCENARIOS] + [(s, 100) for s in SCENARIOS[3:7:3]])
def test_the_interval_covers_and_that_over_rollouts_does_not(scenario, n: int):
    found = coverage(scenario, n, repeats=REPEATS, draws=499, seed=1)
    assert found.tasks >= 0.92 - ERROR
    if not (scenario.few and n == 20):
        assert found.tasks <= 0.98 + ERROR
    assert found.tasks - found.rollouts > 0.05


def test_a_point_where_tasks_agree_would_not_cover():
    found = coverage(next(s for s in SCENARIOS if s.name == "in fewer tasks"), 20, repeats=REPEATS, draws=499)
    assert found.point < 0.92
    assert found.tasks > 0.95
    assert found.flagged > 0.3


@pytest.mark.parametrize("name", NULLS)
@pytest.mark.parametrize("n", [12, 100])
def test_p_is_uniform_without_a_difference(name: str, n: int):
    p = null_p(NULLS[name], n, repeats=300, flips=500)
    # Ties make it careful: fewer small p than uniform, never more.
    assert np.mean(p <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)
    if name == "equal arms, fine scores":
        assert distance_to_uniform(p) < 1.63 / np.sqrt(300)  # Kolmogorov-Smirnov, 1 %


def test_distance_to_uniform_of_known_cases():
    assert distance_to_uniform((np.arange(100) + 0.5) / 100) == pytest.approx(0.005)
    assert distance_to_uniform(np.zeros(10)) == pytest.approx(1.0)


def test_holm_is_that_of_statsmodels():
    assert holm_differences(200) < 1e-12


def test_the_page_is_filled_in_between_its_marks(tmp_path, monkeypatch):
    monkeypatch.setattr(statistics_proof, "SCENARIOS", SCENARIOS[:1])
    monkeypatch.setattr(statistics_proof, "TASKS", (20,))
    page = tmp_path / "page.md"
    page.write_text(f"before\n{statistics_proof.BEGIN}\nold\n{statistics_proof.END}\nafter\n")
    config = StatisticsProofConfig(repeats=100, draws=200, null_repeats=5, flips=100, families=20, out=str(page))
    assert statistics_proof._write(config) == 0
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith(f"{statistics_proof.END}\nafter\n")
    assert "old" not in text
    for part in ("beta-binomial, even", "equal arms, fine scores", "Holm against statsmodels"):
        assert part in text


def test_a_page_without_marks_and_too_few_repeats_are_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("nothing\n")
    with pytest.raises(InputError, match="holds no place for the tables"):
        statistics_proof._write(StatisticsProofConfig(out=str(page)))
    with pytest.raises(ConfigError, match="repeats=10"):
        proof(StatisticsProofConfig(repeats=10))
