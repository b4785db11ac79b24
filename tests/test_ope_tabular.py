"""Estimators where the truth is known: independent logs of `tabular`. The full proof is `experiments.ope_proof`."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.ope import ESTIMATORS, Models, SupportVerdict
from analysis.ope.fitted_q import FittedQConfig
from analysis.ope.proof import Proof, prove
from experiments.ope_config import OpeProofConfig
from experiments.ope_proof import draw_buffer, exact_return, proof_logs, proof_policy
from harness_mdp.settings.tabular import tabular_mdp

MDP = tabular_mdp()
BEHAVIOUR = proof_policy(MDP, "portfolio")
TARGET = 0.7 * BEHAVIOUR + 0.3 * proof_policy(MDP, "check_revise")
EXACT = exact_return(MDP, TARGET, OpeProofConfig().step_cost)


def proved(buffers: int, *names: str) -> dict[str, Proof]:
    logs = proof_logs(MDP, BEHAVIOUR, TARGET, OpeProofConfig(buffers=buffers, tasks=40, rollouts=10))
    chosen = [ESTIMATORS[name] for name in names]
    found = prove(logs, EXACT, chosen, draws=400, refits=50, fit=lambda log: Models(log, FittedQConfig(folds=2)))
    return {proof.estimator: proof for proof in found}


@pytest.fixture(scope="module")
def proofs() -> dict[str, Proof]:
    return proved(250, "is", "wis", "per_decision") | proved(80, "dr", "fqe")


@pytest.mark.parametrize("name", ["is", "per_decision", "dr"])
def test_an_unbiased_estimator_comes_to_the_exact_value(proofs: dict[str, Proof], name: str) -> None:
    assert abs(proofs[name].errors) <= 3
    assert proofs[name].bias_error < 0.01, "the test could not tell a bias"


@pytest.mark.parametrize("name", ["wis", "fqe"])
def test_the_bias_of_the_others_is_small(proofs: dict[str, Proof], name: str) -> None:
    assert abs(proofs[name].bias) < 0.03


@pytest.mark.parametrize("name", ["is", "wis", "per_decision", "dr"])
def test_intervals_of_supported_estimates_cover(proofs: dict[str, Proof], name: str) -> None:
    proof = proofs[name]
    assert proof.n_supported >= 70
    # 92 to 98 %, give or take three standard errors of a share among so many logs.
    slack = 3 * np.sqrt(0.95 * 0.05 / proof.n_supported)
    assert 0.92 - slack <= proof.coverage <= 1.0
    assert proof.width < 0.4


def test_doubly_robust_varies_less_than_weights_alone(proofs: dict[str, Proof]) -> None:
    assert proofs["dr"].spread < 0.7 * proofs["is"].spread


def test_a_target_far_from_the_behaviour_is_refused_in_small_logs() -> None:
    config = OpeProofConfig(buffers=10, tasks=10, rollouts=5)
    target = proof_policy(MDP, "random")
    found = prove(proof_logs(MDP, BEHAVIOUR, target, config), 0.0, [ESTIMATORS["is"]], draws=100)[0]
    assert found.verdicts[SupportVerdict.INSUFFICIENT] == 10
    assert np.isnan(found.coverage)


def test_a_drawn_buffer_has_as_many_tasks_as_asked_and_whole_episodes() -> None:
    shares = []
    for seed in range(40):
        buffer = draw_buffer(MDP, BEHAVIOUR, 10, 3, seed=seed)
        assert np.array_equal(np.bincount(buffer.task), np.full(10, 3))
        assert np.array_equal(np.bincount(buffer.episode, minlength=30), buffer.lengths)
        assert np.array_equal(buffer.mask, MDP.mask[buffer.state])
        shares.append(np.bincount(buffer.level, minlength=3) / 30)
    assert np.mean(shares, axis=0) == pytest.approx([0.2, 0.6, 0.2], abs=0.07)
    assert np.std(shares, axis=0)[1] > 0.08, "difficulties are dealt, not drawn"
