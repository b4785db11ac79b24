"""Behaviour cloning of ours (c_H = 0) and d3rlpy's `DiscreteBC(beta=0)` come to the same policy on held-out states.

`python -m benchmarks.agreement` has the same at paper size on more settings.
"""

import pytest

from benchmarks.agreement import clones, compare
from harness_mdp.settings.tabular import sample_buffer, tabular_mdp
from tests.tabular import policy


@pytest.mark.parametrize("behaviour", ["paper", "portfolio"])
def test_they_agree_on_the_best_legal_action_and_nearly_on_every_probability(behaviour):
    mdp = tabular_mdp()
    table = mdp.table(policy(behaviour))
    data = sample_buffer(mdp, table, n_tasks=80, rollouts=20, seed=1)
    held_out = sample_buffer(mdp, table, n_tasks=20, rollouts=20, seed=2)
    ours, theirs, _ = clones(data)
    found = compare(ours, theirs, held_out)
    assert found.best >= 0.99
    assert found.total_variation <= 0.03
