"""A decision tree over what a controller may read, with its conditions in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.tree import DecisionTreeClassifier

from controllers.data import Bools, Floats, Ints
from harness_mdp.errors import ConfigError
from harness_mdp.mdp import ACTIONS, N_ACTIONS

__all__ = ["LEAVES", "Bounds", "Leaf", "ReadableTree", "condition", "fit_tree", "leaf_bounds"]

Features = npt.NDArray[np.float32]

LEAVES = 12
"""Of a tree that fits on a screen."""

_MIN_SHARE = 0.002
"""A leaf holds at least this share of the states."""

_SPENDING = ("tokens_used", "cost_used")
"""Features that a tree leaves out where it is as good without: they stand in for structure that reads better."""

_AS_GOOD = 0.002
"""Share of the states that a tree without them may lose."""

_BASE = "base would "
_INDENT = "  "

Bounds = dict[int, tuple[float, float]]
"""Input -> (above, at most)."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One path through a tree."""

    conditions: tuple[str, ...]
    """What holds there; empty where the tree is one leaf."""
    action: int
    """What the controller does most there."""
    n_states: int
    agreement: float
    """Share of its states where the controller does that."""


@dataclass(frozen=True, eq=False)
class ReadableTree:
    """A tree from the features and the base action, which is all that a controller may read, to an action."""

    tree: DecisionTreeClassifier
    names: tuple[str, ...]
    """(d + 7,) of its inputs: the features, then `base would <action>`."""
    binary: frozenset[int]
    """Inputs that are 0 or 1 in all states it was fitted on."""

    def actions(self, features: Features, mask: Bools, base_action: Ints) -> Ints:
        """(n,) what the tree would do: the commonest legal action of the leaf, base where it has no legal one.

        Args:
            features: (n, d)
            mask: (n, 7) legal actions.
            base_action: (n,)
        """
        shares = np.zeros((len(features), N_ACTIONS))
        shares[:, self._classes] = np.asarray(self.tree.predict_proba(_inputs(features, base_action)))
        legal = np.where(mask, shares, 0.0)
        decided: Ints = np.where(legal.max(axis=1) > 0, legal.argmax(axis=1), base_action).astype(np.int64)
        return decided

    def place(self, features: Features, base_action: Ints) -> Ints:
        """(n,) index into `leaves` of each state."""
        return np.searchsorted(self._leaf_nodes, self.tree.apply(_inputs(features, base_action))).astype(np.int64)

    def leaves(self) -> tuple[Leaf, ...]:
        """Its leaves, in the order of `place`."""
        bounds = leaf_bounds(self.tree)
        found: list[Leaf] = []
        for node in self._leaf_nodes.tolist():
            action, count, share = self._most(node)
            conditions = tuple(self._condition(at, *limits) for at, limits in bounds[node].items())
            found.append(Leaf(conditions, action, count, share))
        return tuple(found)

    def text(self) -> str:
        """The tree as indented lines; a part in which all leaves do the same is one line."""
        return "\n".join(self._lines(0, 0))

    @property
    def _classes(self) -> Ints:
        return np.asarray(self.tree.classes_, dtype=np.int64)

    @property
    def _leaf_nodes(self) -> Ints:
        inner = self.tree.tree_
        return np.flatnonzero(inner.children_left == inner.children_right).astype(np.int64)

    def _most(self, node: int) -> tuple[int, int, float]:
        """(commonest action, states, its share of them) of a node."""
        inner = self.tree.tree_
        shares: Floats = inner.value[node, 0] / inner.value[node, 0].sum()
        best = int(shares.argmax())
        return int(self._classes[best]), int(inner.n_node_samples[node]), float(shares[best])

    def _condition(self, at: int, low: float, high: float) -> str:
        name = self.names[at]
        if name.startswith(_BASE):
            return name if low > 0 else f"{_BASE}not {name.removeprefix(_BASE)}"
        return condition(name, low, high, binary=at in self.binary)

    def _actions_below(self, node: int) -> set[int]:
        inner = self.tree.tree_
        left, right = int(inner.children_left[node]), int(inner.children_right[node])
        if left == right:
            return {self._most(node)[0]}
        return self._actions_below(left) | self._actions_below(right)

    def _lines(self, node: int, depth: int) -> list[str]:
        inner, indent = self.tree.tree_, _INDENT * depth
        if len(self._actions_below(node)) == 1:
            action, count, share = self._most(node)
            return [f"{indent}{ACTIONS[action].label}  ({count:,} states, {share:.0%} so)"]
        at, threshold = int(inner.feature[node]), float(inner.threshold[node])
        sides = [
            (int(inner.children_left[node]), self._condition(at, -np.inf, threshold)),
            (int(inner.children_right[node]), self._condition(at, threshold, np.inf)),
        ]
        lines: list[str] = []
        for child, condition in sides:
            below = self._lines(child, depth + 1)
            if len(below) == 1:
                lines.append(f"{indent}{condition}: {below[0].strip()}")
            else:
                lines += [f"{indent}{condition}:", *below]
        return lines


def fit_tree(
    features: Features, base_action: Ints, choice: Ints, names: Sequence[str], leaves: int = LEAVES
) -> ReadableTree:
    """The tree that tells the chosen actions apart best (Gini impurity); a state weighs by its visits, its rows.

    Args:
        features: (n, d) of n visited states.
        base_action: (n,)
        choice: (n,) the action chosen in each.
        names: (d,) of the features.
        leaves: at most.

    Raises:
        ConfigError: fewer than two leaves.
        ValueError: another number of names than of features.
    """
    if leaves < 2:
        raise ConfigError(f"a tree of {leaves} leaves; expected at least 2")
    if len(names) != features.shape[1]:
        raise ValueError(f"{len(names)} names for {features.shape[1]} features")
    inputs = _inputs(features, base_action)
    blind = inputs.copy()
    blind[:, [at for at, name in enumerate(names) if name in _SPENDING]] = 0.0  # a constant is never split on
    tree, plain = _fitted(inputs, choice, leaves), _fitted(blind, choice, leaves)
    if plain.score(blind, choice) >= tree.score(inputs, choice) - _AS_GOOD:
        tree = plain
    binary = np.flatnonzero(((inputs == 0) | (inputs == 1)).all(axis=0))
    all_names = (*names, *(f"{_BASE}{action.label}" for action in ACTIONS))
    return ReadableTree(tree, all_names, frozenset(binary.tolist()))


def _fitted(inputs: Features, choice: Ints, leaves: int) -> DecisionTreeClassifier:
    smallest = max(1, int(_MIN_SHARE * len(inputs)))
    tree = DecisionTreeClassifier(max_leaf_nodes=leaves, min_samples_leaf=smallest, random_state=0)
    tree.fit(inputs, choice)
    return tree


def _inputs(features: Features, base_action: Ints) -> Features:
    """(n, d + 7)"""
    return np.hstack([features, np.eye(N_ACTIONS, dtype=np.float32)[base_action]])


def leaf_bounds(tree: DecisionTreeClassifier) -> dict[int, Bounds]:
    """Leaf node -> the conditions on the way to it, one for each input."""
    inner = tree.tree_
    found: dict[int, Bounds] = {}
    todo: list[tuple[int, Bounds]] = [(0, {})]
    while todo:
        node, bounds = todo.pop()
        left, right = int(inner.children_left[node]), int(inner.children_right[node])
        if left == right:
            found[node] = bounds
            continue
        at, threshold = int(inner.feature[node]), float(inner.threshold[node])
        low, high = bounds.get(at, (-np.inf, np.inf))
        todo += [(left, bounds | {at: (low, threshold)}), (right, bounds | {at: (threshold, high)})]
    return found


def condition(name: str, low: float, high: float, *, binary: bool) -> str:
    """`low < name <= high` in as few words as hold; `name = 0` or `name = 1` of a binary input."""
    if binary:
        return f"{name} = {int(low > 0)}"
    if np.isinf(low):
        return f"{name} <= {high:.2g}"
    return f"{name} > {low:.2g}" if np.isinf(high) else f"{low:.2g} < {name} <= {high:.2g}"
