"""What the tests of `tabular` share: policies to evaluate, and episodes of the real runner walked over the MDP."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from controllers.exploration import Explore, Uniform, epsilon_policy, portfolio_policy
from harness_mdp.mdp import Action, Episode, Policy, fold, start
from harness_mdp.settings.scripts import script_policy
from harness_mdp.settings.tabular import Tabular, TabularMDP
from harness_mdp.settings.tabular.setting import missing_figures
from harness_mdp.settings.tabular.world import LEVELS

SETTING = Tabular()
SCRIPTS = tuple(SETTING.scripts)
BEHAVIOURS = ("paper", "portfolio", "random")


def policy(name: str) -> Policy:
    match name:
        case "random":
            return Uniform()
        case "paper":
            return epsilon_policy(SETTING, "base", 0.25, Explore.LEGAL)
        case "portfolio":
            return portfolio_policy(SETTING)
        case _:
            return script_policy(SETTING, name)


def random_table(mdp: TabularMDP, rng: np.random.Generator) -> np.ndarray:
    """(3, n, 7): a policy of the features, drawn at random; the same wherever the difficulty is not told."""
    odds = rng.exponential(size=(*mdp.chance.shape[:2], 7)) ** 3 * mdp.mask
    odds = np.where(mdp.told[:, None], odds, odds[0])
    return odds / odds.sum(axis=2, keepdims=True)


def walk(mdp: TabularMDP, episode: Episode) -> Iterator[tuple[int, int, Action, int]]:
    """(level, state, action, outcome) of each step of a real episode; fails where the MDP says otherwise."""
    level, at = LEVELS.index(episode.difficulty), 0
    states = fold(episode.events, start(episode.horizon))
    for step, after in zip(episode.steps, states[1:], strict=True):
        assert np.array_equal(step.features, mdp.features[level, at])
        assert np.array_equal(step.mask, mdp.mask[at])
        assert step.base_action == mdp.base_action[at]
        outcome = {
            Action.DRAFT: missing_figures(after),
            Action.REVISE: missing_figures(after),
            Action.CHECK: len(step.event.check.problems) if step.event.check else 0,
        }.get(step.action, 0)
        assert mdp.chance[level, at, step.action, outcome] > 0.0
        yield level, at, step.action, outcome
        at = int(mdp.successor[at, step.action, outcome])
    assert at >= mdp.n_states, "the MDP says that it goes on"
    assert episode.return_ == mdp.quality[at - mdp.n_states]
    assert states[-1].counts == mdp.final_states[at - mdp.n_states].counts
