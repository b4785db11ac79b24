"""Pessimistic finite-horizon planning on abstract states (DESIGN section 8).

A member of the ensemble draws half of the tasks, finds cells in which the actions are worth about the same, and
plans on the transitions between them: with h steps left,

    Q_h(c, a) = mean over visits of (c, a) of [ G if the episode ended there, else V_{h-1}(c') ] - z · se
    V_h(c)    = max over supported a of Q_h(c, a)

The cells come from a regression tree on the features, clocks left out (the stage is the clock), which predicts the
values of all seven actions; since these depend on the plan and the plan on the cells, the two take turns.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from controllers.cells import Cells, fit_cells, visited_pairs
from controllers.config import Method, PlanConfig, QConfig
from controllers.data import Bools, Floats, Ints, StepData
from controllers.fitted_q import action_values, regress_actions
from controllers.forest import Forest
from controllers.planned_q import PlannedQ
from controllers.transitions import Transitions, bootstrap_tasks, transitions
from harness_mdp.errors import UnusableBuffer
from harness_mdp.hashing import generator
from harness_mdp.mdp import N_ACTIONS, Action

__all__ = ["fit_planned_q", "plan_on_cells"]

_TREES = 20
_LEAF = 10
"""Of the forest that smooths values between two rounds; it is averaged away, and no result depends on it closely."""

_SPREAD_FLOOR = 0.01
"""Variance added before a standard error is taken: three visits with equal returns are not certain."""


def fit_planned_q(data: StepData, config: PlanConfig, seed: int) -> PlannedQ:
    """Plan with every member of the ensemble.

    Raises:
        UnusableBuffer: no state-action pair has enough visits, or see `transitions`.
    """
    log = transitions(data)
    members: list[tuple[Cells, Floats]] = []
    for index in range(config.members):
        rng = generator("plan member", seed, index)
        rows = bootstrap_tasks(log.task, 0.5, rng) if config.members > 1 else np.ones(len(log.action), dtype=np.bool_)
        cells = _find_cells(log, rows, config, int(rng.integers(2**31)))
        members.append((cells, plan_on_cells(log, cells, config)))
    if all(np.isnan(table).all() for _, table in members):
        raise UnusableBuffer(
            f"no abstract state has {config.min_visits} visits of an action from {config.min_tasks} tasks: nothing to "
            "plan with. Collect more rollouts, or lower min_visits and min_tasks"
        )
    size = max(cells.n for cells, _ in members)
    tables = np.full((len(members), log.horizon, size, N_ACTIONS), np.nan)
    for index, (cells, table) in enumerate(members):
        tables[index, :, : cells.n] = table
    return PlannedQ(Forest.join([cells.forest for cells, _ in members]), tables, config.spread_penalty)


def plan_on_cells(log: Transitions, cells: Cells, config: PlanConfig) -> Floats:
    """(H, C, 7) pessimistic Q with h = 1..H steps left; NaN where a pair has too few visits.

    A step that was not the last of its episode, replayed with one step left, would have ended it: its value is then
    what the harness gets for submitting in the cell that followed, estimated from the submits that were made there.
    """
    cell = cells.of(log.features)
    pair = cell * N_ACTIONS + log.action
    n_pairs = cells.n * N_ACTIONS
    visits, supported = visited_pairs(pair, log.task, cells.n, config.min_visits, config.min_tasks)
    last = log.last
    following = np.where(last, 0, cell[log.following])
    value = _submit_value(log, cell, cells.n)
    scale = np.maximum(visits, 1)
    stages: list[Floats] = []
    for _ in range(log.horizon):
        backed_up = np.where(last, log.outcome, value[following])
        mean = np.bincount(pair, weights=backed_up, minlength=n_pairs) / scale
        square = np.bincount(pair, weights=backed_up**2, minlength=n_pairs) / scale
        error = np.sqrt((np.maximum(square - mean**2, 0.0) + _SPREAD_FLOOR) / scale)
        q = np.where(supported, mean - config.z * error, np.nan).reshape(cells.n, N_ACTIONS)
        stages.append(q)
        value = np.where(np.isnan(q).all(axis=1), 0.0, np.where(np.isnan(q), -np.inf, q).max(axis=1))
    return np.stack(stages)


def _submit_value(log: Transitions, cell: Ints, n: int) -> Floats:
    """(C,) mean return of the submits made in each cell; 0 where none was, as for an episode without an artifact."""
    submits = log.action == Action.SUBMIT
    count = np.bincount(cell[submits], minlength=n)
    total = np.bincount(cell[submits], weights=log.outcome[submits], minlength=n)
    mean: Floats = total / np.maximum(count, 1)
    return mean


def _find_cells(log: Transitions, rows: Bools, config: PlanConfig, seed: int) -> Cells:
    """Cells and plan in turns, on some of the steps; first by what each action led to under the behaviour."""
    at = np.flatnonzero(rows)
    features, action = log.features[at], log.action[at]
    last, following = log.last[at], log.following[at]
    target = log.outcome[at]
    part = _only_rows(log, at)

    def alike(seed: int) -> Cells:
        """Cells in which the values of all actions are alike, by the target at hand."""
        values = _smoothed(features, action, target, log.mask[at], seed)
        return fit_cells(features, values, config.cells, config.cell_steps)

    cells = alike(seed)
    # Cells are sought with plain means; the final plan alone is pessimistic.
    plain = replace(config, z=0.0, min_visits=min(5, config.min_visits), min_tasks=1)
    for turn in range(config.rounds):
        table = plan_on_cells(part, cells, plain)
        value = _state_values(table, cells, log)
        target = np.where(last, log.outcome[at], value[following])
        cells = alike(seed + turn + 1)
    return cells


def _state_values(table: Floats, cells: Cells, log: Transitions) -> Floats:
    """(n,) value of every logged state by the plan."""
    q = table[log.left - 1, cells.of(log.features)]
    best = np.where(log.mask & ~np.isnan(q), q, -np.inf).max(axis=1)
    values: Floats = np.where(np.isfinite(best), best, 0.0)
    return values


def _smoothed(features: npt.NDArray[np.float32], action: Ints, target: Floats, mask: Bools, seed: int) -> Floats:
    """(n, 7) value of every action in every state, by a forest on state and action; the worst where illegal."""
    smoother = QConfig(method=Method.ONE_STEP, trees=_TREES, leaf_steps=_LEAF)
    values = action_values(regress_actions(features, action, target, smoother, seed), features)
    return np.where(mask, values, values.min())


def _only_rows(log: Transitions, at: Ints) -> Transitions:
    """Whole episodes of `log`, their `following` counted anew."""
    place = np.full(len(log.action), -1, dtype=np.int64)
    place[at] = np.arange(len(at))
    following = np.where(log.following[at] < 0, -1, place[log.following[at]])
    return Transitions(
        features=log.features[at],
        mask=log.mask[at],
        base_action=log.base_action[at],
        action=log.action[at],
        propensities=log.propensities[at],
        task=log.task[at],
        outcome=log.outcome[at],
        following=following,
        left=log.left[at],
        horizon=log.horizon,
    )
