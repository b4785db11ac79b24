"""What a controller learned, for a person: a small decision tree, and the states where it does not do as base would.

Both look at the action that a controller finds best in each stored state, so a state weighs by its visits. Nothing is
run, and nothing is estimated: how good the actions are is asked of a Q that the caller has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from controllers.data import Bools, Floats, Ints, StepData
from controllers.folds import task_folds
from controllers.readable_tree import LEAVES, ReadableTree, fit_tree
from harness_mdp.errors import UnusableBuffer
from harness_mdp.mdp import ACTIONS, N_ACTIONS, DecisionBatch, Policy, Probs, State

__all__ = ["Explanation", "Fidelity", "choices", "differences", "explain"]

_FOLDS = 5

_COLUMNS = ("state", "base_action", "action", "n_states", "share", "n_tasks", "n_taken", "advantage", "n_valued")


def choices(probs: Probs, mask: Bools) -> Ints:
    """(n,) the most probable legal action of each row of (n, 7), the lowest index among equals."""
    best: Ints = np.where(mask, probs, -1.0).argmax(axis=1).astype(np.int64)
    return best


@dataclass(frozen=True, slots=True)
class Fidelity:
    """How well a tree of this size stands for a controller, in states of tasks that it was not fitted on."""

    agreement: float
    """Share of the states where both choose the same action."""
    where_it_differs: float
    """The same over the states where the controller does not do as base would; NaN where there is none."""
    base: float
    """Share of the states where base does what the controller does: the fidelity of the tree "as base"."""
    n_states: int
    n_tasks: int


@dataclass(frozen=True, eq=False)
class Explanation:
    """A controller, readable."""

    tree: ReadableTree
    """Fitted on all states."""
    fidelity: Fidelity | None
    """None with a single task, which leaves none to hold out."""
    certainty: float
    """Mean probability of the chosen action: 1 for a policy that decides greedily."""
    differences: pd.DataFrame
    """See `differences`."""


def explain(
    data: StepData,
    policy: Policy,
    names: Sequence[str],
    *,
    leaves: int = LEAVES,
    values: Floats | None = None,
    states: Sequence[State] = (),
) -> Explanation:
    """Show what `policy` does in the states of `data`.

    Args:
        data: n steps of m episodes of one setting.
        policy: a saved controller; or a script, which reads `states`.
        names: (d,) of the features.
        leaves: of the tree, at most.
        values: (n, 7) Q of every action, -inf or NaN where unknown, for the advantages; None leaves them out.
        states: (n,) of the same steps, for policies that read them.

    Raises:
        UnusableBuffer: no steps.
        ConfigError: fewer than two leaves.
        ValueError: names, values or the policy's features do not fit.
    """
    if len(data.action) == 0:
        raise UnusableBuffer("there are no steps, so no states to look at. Collect episodes first")
    probs = policy.probs_batch(DecisionBatch(data.features, data.mask, data.base_action, tuple(states)))
    choice = choices(probs, data.mask)
    tree = fit_tree(data.features, data.base_action, choice, names, leaves)
    return Explanation(
        tree=tree,
        fidelity=_fidelity(data, choice, names, leaves),
        certainty=float(probs[np.arange(len(choice)), choice].mean()),
        differences=differences(data, choice, tree, values),
    )


def differences(data: StepData, choice: Ints, tree: ReadableTree, values: Floats | None = None) -> pd.DataFrame:
    """Where the controller does not do as base would, by leaf of the tree.

    Args:
        data: n steps of m episodes.
        choice: (n,) the controller's action.
        tree: groups the states.
        values: (n, 7) Q, -inf or NaN where unknown; or None.

    Returns:
        One row a leaf, base action and chosen action, the most states first: `state base_action action n_states
        share n_tasks n_taken advantage n_valued`. `share` is of all n states; `n_taken` counts those where the log
        has the chosen action, so that the data say something of it; `advantage` is the mean of Q(s, a) - Q(s, base)
        over the `n_valued` states where both are known, in units of the return.

    Raises:
        ValueError: values of another shape.
    """
    if values is not None and values.shape != (len(choice), N_ACTIONS):
        raise ValueError(f"values have shape {values.shape}; expected ({len(choice)}, {N_ACTIONS})")
    gain = np.full(len(choice), np.nan)
    if values is not None:
        rows, known = np.arange(len(choice)), np.where(np.isfinite(values), values, np.nan)
        gain = known[rows, choice] - known[rows, data.base_action]
    place, leaves = tree.place(data.features, data.base_action), tree.leaves()
    differs = np.flatnonzero(choice != data.base_action)
    keys = np.stack([place[differs], data.base_action[differs], choice[differs]], axis=1)
    groups, member = np.unique(keys, axis=0, return_inverse=True)
    found: list[dict[str, object]] = []
    for index, (leaf, base, action) in enumerate(groups.tolist()):
        here = differs[member.ravel() == index]
        valued = gain[here][~np.isnan(gain[here])]
        found.append(
            {
                "state": ", ".join(leaves[leaf].conditions) or "all states",
                "base_action": ACTIONS[base].label,
                "action": ACTIONS[action].label,
                "n_states": len(here),
                "share": len(here) / len(choice),
                "n_tasks": len(np.unique(data.task[data.episode[here]])),
                "n_taken": int((data.action[here] == action).sum()),
                "advantage": float(valued.mean()) if len(valued) else np.nan,
                "n_valued": len(valued),
            }
        )
    table = pd.DataFrame({name: [row[name] for row in found] for name in _COLUMNS})
    return table.sort_values("n_states", ascending=False, kind="stable", ignore_index=True)


def _fidelity(data: StepData, choice: Ints, names: Sequence[str], leaves: int) -> Fidelity | None:
    """Each task is asked of a tree that was fitted on the other folds of tasks."""
    task = data.task[data.episode]
    n_tasks = len(np.unique(task))
    if n_tasks < 2:
        return None
    fold = task_folds(task, min(_FOLDS, n_tasks))
    told = np.empty(len(choice), dtype=np.int64)
    for own in np.unique(fold):
        out = fold == own
        tree = fit_tree(data.features[~out], data.base_action[~out], choice[~out], names, leaves)
        told[out] = tree.actions(data.features[out], data.mask[out], data.base_action[out])
    agrees, differs = told == choice, choice != data.base_action
    return Fidelity(
        agreement=float(agrees.mean()),
        where_it_differs=float(agrees[differs].mean()) if differs.any() else np.nan,
        base=float(1.0 - differs.mean()),
        n_states=len(choice),
        n_tasks=n_tasks,
    )
