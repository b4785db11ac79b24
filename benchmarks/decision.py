"""One masked decision, beside d3rlpy's `predict`.

`python -m benchmarks.decision`. Ours takes a decision point to probabilities over the legal actions and draws one;
d3rlpy takes a (1, d) array to the best action, knowing no masks. Blocks alternate, so that both meet the same
machine.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np
import torch

from benchmarks.peer import HIDDEN, bc_peer, paper_size, quiet_d3rlpy
from benchmarks.table import REPEATS, Line, Report, text
from controllers.config import DecisionRule
from controllers.network import initial_weights
from controllers.policy import ControllerPolicy
from harness_mdp.hashing import generator
from harness_mdp.mdp import N_ACTIONS, Action, DecisionPoint, start
from harness_mdp.runner import draw_action

DECISIONS = 4000
GOAL = 6.0


def measure() -> Report:
    """Microseconds of a decision, at the median and at the 99th percentile."""
    torch.set_num_threads(1)
    data = paper_size()
    weights = initial_weights(data.features.shape[1], HIDDEN, seed=0)
    sample, greedy = ControllerPolicy(weights), ControllerPolicy(weights, DecisionRule.GREEDY)
    state, rng = start(10), generator("benchmark", "decision")
    points = [
        DecisionPoint(state, data.features[i], data.mask[i], Action(int(data.base_action[i]))) for i in range(DECISIONS)
    ]
    observations = [data.features[i : i + 1] for i in range(DECISIONS)]
    peer = bc_peer(quiet_d3rlpy())
    peer.create_impl((data.features.shape[1],), N_ACTIONS)
    calls: dict[str, Callable[[int], object]] = {
        "sampled decision: probabilities and draw": lambda i: draw_action(sample.probs(points[i]), rng),
        "greedy decision": lambda i: Action(int(greedy.probs(points[i]).argmax())),
        "probabilities alone": lambda i: sample.probs(points[i]),
        "peer": lambda i: peer.predict(observations[i]),
    }
    found: dict[str, list[np.ndarray]] = {name: [] for name in calls}
    for _ in range(REPEATS + 1):  # the first round warms up and does not count
        for name, call in calls.items():
            found[name].append(np.percentile(latencies(call), (50, 99)))
    middle = {name: [1e6 * median(float(p[k]) for p in of[1:]) for k in (0, 1)] for name, of in found.items()}
    peer_p50, peer_p99 = middle.pop("peer")
    lines: list[Line] = []
    for name, (p50, p99) in middle.items():
        lines.append(Line(name, "us at p50", p50, peer_p50, GOAL))
        lines.append(Line(name, "us at p99", p99, peer_p99, None))
    return Report(
        title="decision",
        peer="d3rlpy's predict",
        setup=f"{data.features.shape[1]} features, hidden {HIDDEN}; {DECISIONS} decisions; median of {REPEATS}",
        lines=tuple(lines),
    )


def latencies(call: Callable[[int], object]) -> list[float]:
    """Seconds of each of `DECISIONS` calls."""
    seconds: list[float] = []
    for i in range(DECISIONS):
        began = perf_counter()
        call(i)
        seconds.append(perf_counter() - began)
    return seconds


if __name__ == "__main__":
    print(text(measure()))
