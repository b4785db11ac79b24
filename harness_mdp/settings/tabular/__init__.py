"""The setting `tabular`: a small Harness MDP with known transitions, on which learners and estimators are proved.

`Tabular` is the setting, run by the same commands as any other. Beside it stands its mathematics, without an executor:
`tabular_mdp` (states and transitions as arrays), exact values and optimum (`values`), the exact distribution of process
statistics (`process`) and a vectorised sampler (`sampling`).
"""

from harness_mdp.settings.tabular.graph import TabularMDP, tabular_mdp
from harness_mdp.settings.tabular.policies import FeatureTable
from harness_mdp.settings.tabular.process import (
    check_before_submit,
    expected_statistic,
    final_probabilities,
    statistic_distribution,
    submitted,
    visit_probabilities,
)
from harness_mdp.settings.tabular.sampling import TabularSample, sample_buffer
from harness_mdp.settings.tabular.setting import Tabular
from harness_mdp.settings.tabular.values import (
    exact_q,
    exact_value,
    one_step_improvement,
    optimal_policy,
    optimal_q,
    optimal_value,
    state_values,
)

__all__ = [
    "FeatureTable",
    "Tabular",
    "TabularMDP",
    "TabularSample",
    "check_before_submit",
    "exact_q",
    "exact_value",
    "expected_statistic",
    "final_probabilities",
    "one_step_improvement",
    "optimal_policy",
    "optimal_q",
    "optimal_value",
    "sample_buffer",
    "state_values",
    "statistic_distribution",
    "submitted",
    "tabular_mdp",
    "visit_probabilities",
]
