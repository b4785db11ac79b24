"""`python -m harness_mdp.support`: what lacks data, what a mixture would bring, and the command that brings it."""

from __future__ import annotations

import json
import shlex
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st

import harness_mdp.collect
import harness_mdp.support
import harness_mdp.train
from analysis.collection_support import LEAST_ESS, Addition, StatePair, addition, choose, rollouts_needed
from analysis.state_words import state_facts, worded_clusters
from buffers import ReplayBuffer, TrainingArrays
from controllers.exploration import Portfolio, portfolio_policy
from controllers.saved import load_controller
from experiments.collected import logged_states
from experiments.collection import collect
from experiments.command_words import hydra_value
from experiments.config import (
    CollectConfig,
    PolicyConfig,
    PortfolioPolicyConfig,
    ScriptPolicyConfig,
    SettingConfig,
    SimulatedConfig,
)
from experiments.mixtures import candidate_mixtures
from experiments.policies import make_policy
from experiments.replay import behaviour_policies
from experiments.support import support, write_pairs
from experiments.support_config import SupportConfig
from experiments.support_printing import print_support
from harness_mdp.errors import ConfigError
from harness_mdp.mdp import Action, DecisionBatch, State
from harness_mdp.settings import open_setting
from tests.commands import command
from tests.test_bad_input import refused

SETTING = "planning"


def fill(buffer: Path, policy: PolicyConfig, *, setting: str = SETTING, tasks: int = 20, rollouts: int = 10) -> Path:
    setting_config = SettingConfig(name=setting, tasks=tasks)
    collect(
        CollectConfig(
            setting=setting_config, executor=SimulatedConfig(), policy=policy, buffer=str(buffer), rollouts=rollouts
        ),
        quiet=True,
    )
    return buffer


@pytest.fixture(scope="module")
def base_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """16 training tasks x 6 rollouts of base: nobody ever checked."""
    return fill(tmp_path_factory.mktemp("base") / "buffer", ScriptPolicyConfig(name="base"), rollouts=6)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """16 training tasks x 10 rollouts of the default portfolio."""
    return fill(tmp_path_factory.mktemp("mixed") / "buffer", PortfolioPolicyConfig())


def asked(buffer: Path, **changes) -> SupportConfig:
    return SupportConfig(buffer=str(buffer), **changes)


def found(pairs: tuple[StatePair, ...], state: str, action: Action) -> StatePair:
    return next(pair for pair in pairs if state in pair.state and pair.action is action)


def test_what_base_never_did_is_missing_who_would_do_it_is_named_and_a_mixture_would_bring_it(base_only: Path) -> None:
    result = support(asked(base_only))
    check = found(result.lacking, "draft, not checked", Action.CHECK)
    assert (check.visits, check.tasks, check.missing, check.behaviour) == (0, 0, 20, 0.0)
    assert {"forced_check", "check_revise"} <= set(check.proposed_by)
    assert "base" not in check.proposed_by
    at = result.lacking.index(check)
    by_name = {each.name: each.visits[at] for each in result.additions}
    assert 0 < by_name["portfolio"] < by_name["portfolio + check_revise"]
    submit = found(result.pairs, "draft, not checked", Action.SUBMIT)
    assert submit.missing == 0
    assert "base" in submit.proposed_by


def test_what_no_script_would_do_there_is_not_sensible_unless_it_is_cheap(mixed: Path) -> None:
    named = {(pair.state, pair.action) for pair in support(asked(mixed, cheap=0.0)).pairs}
    assert all(pair.proposed_by for pair in support(asked(mixed, cheap=0.0)).pairs)
    with_cheap = support(asked(mixed)).pairs
    extra = [pair for pair in with_cheap if (pair.state, pair.action) not in named]
    assert extra
    assert all(not pair.proposed_by and pair.action is not Action.SUBMIT for pair in extra)


def test_the_suggested_command_runs_and_what_was_missing_gets_data(base_only: Path) -> None:
    before = support(asked(base_only, rollouts=5))
    assert before.suggestion is not None
    python, flag, module, *words = shlex.split(before.suggestion.command)
    assert (python, flag, module) == ("python", "-m", "harness_mdp.collect")
    copy = base_only.parent / "grown"
    words = [word if not word.startswith("buffer=") else f"buffer={copy}" for word in words]
    fill(copy, ScriptPolicyConfig(name="base"), rollouts=6)
    assert module == harness_mdp.collect.__name__
    here(harness_mdp.collect.main, *words)
    states = ReplayBuffer(copy)
    assert states.stats.episodes == before.arrays.n_episodes + before.suggestion.episodes  # none was there already
    grown = support(asked(copy))
    was, now = (found(each.pairs, "draft, not checked", Action.CHECK) for each in (before, grown))
    assert now.visits > was.visits
    assert sorted(set(states.read(["task_id"])["task_id"])) == sorted(before.arrays.task_ids)  # the same tasks


def test_expected_visits_of_the_policy_that_collected_are_those_it_made(mixed: Path) -> None:
    arrays, states, clusters = _read(mixed)
    cluster = clusters.assign(states)
    pairs = _every_pair(clusters.labels)
    same = addition("same", arrays, arrays.propensities, cluster, np.ones(arrays.n_steps), pairs)
    assert same.ess == pytest.approx(arrays.n_episodes)
    assert same.steps == pytest.approx(arrays.n_steps / arrays.n_episodes)
    assert same.tokens == pytest.approx(same.steps)  # each step is worth one token here
    visits = np.bincount(cluster * 7 + arrays.action, minlength=len(pairs)) / arrays.n_episodes
    assert np.array(same.visits) == pytest.approx(visits, abs=0.1)


def test_expected_visits_of_another_mixture_are_those_it_makes_when_it_is_run(tmp_path: Path) -> None:
    """On `tabular`, whose episodes cost nothing: 800 logged, 800 run."""
    mixture = PortfolioPolicyConfig(weights={"base": 0.3, "check_revise": 0.4, "tool_first": 0.2})
    logged = fill(tmp_path / "log", PortfolioPolicyConfig(), setting="tabular", tasks=50, rollouts=20)
    real = fill(tmp_path / "real", mixture, setting="tabular", tasks=50, rollouts=20)
    arrays, states, clusters = _read(logged)
    pairs = _every_pair(clusters.labels)
    batch = DecisionBatch(arrays.features, arrays.mask, arrays.base_action, states)
    probs = make_policy(mixture, open_setting("tabular")).probs_batch(batch)
    expected = addition("m", arrays, probs, clusters.assign(states), np.ones(arrays.n_steps), pairs)
    there, then, _ = _read(real)
    cluster = clusters.assign(then)
    assert (cluster >= 0).mean() > 0.99
    visits = np.bincount((cluster * 7 + there.action)[cluster >= 0], minlength=len(pairs)) / there.n_episodes
    assert expected.steps == pytest.approx(there.n_steps / there.n_episodes, rel=0.05)
    assert np.abs(np.array(expected.visits) - visits).sum() < 0.15 * visits.sum()
    assert np.abs(arrays.n_steps / arrays.n_episodes - there.n_steps / there.n_episodes) > 0.3  # it is another one


def test_nothing_is_suggested_where_nothing_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    buffer = fill(tmp_path / "buffer", ScriptPolicyConfig(name="random"), setting="tabular", rollouts=20)
    config = asked(buffer, visits=1, tasks=1)
    result = support(config)
    assert len(result.pairs) > 5
    assert result.lacking == ()
    assert (result.suggestion, result.additions) == (None, ())
    print_support(config, result)
    out = capsys.readouterr().out
    assert "nothing is missing" in out
    assert "harness_mdp.collect" not in out


def test_the_command_prints_a_table_and_one_command_and_writes_every_pair(
    base_only: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (f"buffer={base_only}", f"setting={SETTING}", "rows=3", f"out={tmp_path}/pairs.json")
    here(harness_mdp.support.main, *arguments)
    out = capsys.readouterr().out
    for words in ("pairs that lack data", "proposed by", "mixtures, for", "ESS", "simulated executor", "importance"):
        assert words in out
    lines = [line for line in out.splitlines() if line.startswith("python -m harness_mdp.collect ")]
    assert len(lines) == 1
    rows = json.loads((tmp_path / "pairs.json").read_text())
    assert {row["suggestion"] for row in rows} == {lines[0]}
    lacking = [row for row in rows if row["missing"]]
    assert f"... and {len(lacking) - 3} more" in out
    assert all({"portfolio", "check_revise, ε = 0.25"} <= _mixtures(row) for row in lacking)
    write_pairs(support(asked(base_only)), str(tmp_path / "pairs.parquet"))
    assert pl.read_parquet(tmp_path / "pairs.parquet")["missing"].to_list() == [row["missing"] for row in rows]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"visits": 0}, "visits=0"),
        ({"proposed": 0.0}, "proposed=0.0"),
        ({"rows": 0}, "rows=0"),
        ({"split": "nope"}, "train, eval or all"),
        ({"policies": ["nope"]}, "'nope' is neither a script"),
        ({"policies": ["a", "a"]}, "twice"),
        ({"out": "pairs.csv"}, ".parquet"),
    ],
)
def test_what_cannot_be_is_refused_by_name(mixed: Path, changes: dict, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        support(asked(mixed, **changes))


# -- state clusters in words -----------------------------------------------------------------------------------------


def test_clusters_are_described_in_words_and_each_state_is_in_one(mixed: Path) -> None:
    _, states, clusters = _read(mixed)
    at = clusters.assign(states)
    assert at.min() >= 0
    assert len(set(clusters.labels)) == len(clusters.labels)
    for state, index in zip(states, at, strict=True):
        label = clusters.labels[index]
        assert label.startswith("draft" if state.artifact else "no draft")
        assert ("not checked" in label) <= (not state.version_checked)
        assert ("clean" in label) <= (state.open_problems == 0)
        assert ("never revised" in label) <= (state.revisions == 0)


@settings(deadline=None, max_examples=25)
@given(least=st.integers(1, 60))
def test_a_cluster_is_large_enough_unless_nothing_coarser_is_left(mixed: Path, least: int) -> None:
    states = _states(mixed)
    clusters = worded_clusters(states, least)
    sizes = Counter(clusters.assign(states).tolist())
    assert sum(sizes.values()) == len(states)
    for index, size in sizes.items():
        assert size >= least or len(clusters.places[index]) == 1


def test_a_state_unlike_all_that_were_logged_is_in_no_cluster(mixed: Path) -> None:
    drafted = [state for state in _states(mixed) if state.artifact]
    assert worded_clusters(drafted, 5).assign([State(horizon=10, budgets=drafted[0].budgets)]).tolist() == [-1]
    assert state_facts(drafted[0])[0] == "draft"


# -- mixtures and the choice between them ----------------------------------------------------------------------------


def test_every_candidate_is_a_policy_whose_weights_sum_to_one() -> None:
    setting = open_setting(SETTING)
    mixtures = candidate_mixtures(list(setting.scripts), [])
    for mixture in mixtures:
        make_policy(mixture.policy, setting)  # refuses weights that do not
    assert len({mixture.name for mixture in mixtures}) == len(mixtures)
    assert make_policy(mixtures[0].policy, setting).fingerprint == portfolio_policy(setting).fingerprint
    more = next(m.policy for m in mixtures if m.name == "portfolio + tool_first")
    assert isinstance(more, PortfolioPolicyConfig)
    assert more.weights["tool_first"] == max(more.weights.values())


def _pair(missing: int) -> StatePair:
    return StatePair(0, "draft", Action.CHECK, 100, 20 - missing, 5, 0.1, ("base",), missing)


def test_the_mixture_that_fills_most_is_suggested_unless_its_estimate_rests_on_too_little() -> None:
    pairs = (_pair(20), _pair(10))
    many = Addition("many", (0.2, 0.2), 4.0, 100.0, ess=LEAST_ESS)
    shaky = Addition("shaky", (9.0, 9.0), 4.0, 100.0, ess=LEAST_ESS - 1)
    one = Addition("one", (0.5, 0.0), 4.0, 100.0, ess=1000.0)
    assert choose([one, shaky, many], pairs, 100).name == "many"
    assert choose([shaky], pairs, 100).name == "shaky"
    assert many.filled(pairs, 50) == 1
    assert many.share(pairs, 50) == pytest.approx((0.5 + 1.0) / 2)
    assert rollouts_needed(many, pairs, tasks=10, most=20) == 10
    assert rollouts_needed(Addition("none", (0.0, 0.0), 4.0, 1.0, 99.0), pairs, tasks=10, most=20) == 20


# -- policy=DIR on the command line ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def controller(mixed: Path) -> Path:
    """A controller in a folder whose name needs quotes."""
    folder = mixed.parent / "my bc, 1"
    here(harness_mdp.train.main, f"setting={SETTING}", f"buffer={mixed}", "method=bc", f"out='{folder}'")
    return folder


def here(main: Callable[[], None], *arguments: str) -> None:
    """The command in this process, which has loaded torch and Hydra already; fails unless it exits with 0."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["command", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
    assert left.value.code == 0


def test_policy_may_be_a_controllers_folder_with_exploration_and_in_a_portfolio(
    controller: Path, tmp_path: Path
) -> None:
    buffer = tmp_path / "buffer"
    tiny = (f"setting={SETTING}", "setting.tasks=10", "rollouts=1", f"buffer={buffer}")
    command("harness_mdp.collect", *tiny, f"policy={controller}", "policy.epsilon=0.3")  # a process of its own
    explored = ReplayBuffer(buffer).tensors(SETTING)
    region = explored.mask.copy()
    region[:, Action.SUBMIT] = False
    least = 0.3 * region / region.sum(axis=1, keepdims=True)
    assert (explored.propensities >= least - 1e-12).all()
    assert set(explored.policies) == {"epsilon"}
    here(harness_mdp.collect.main, *tiny, f"policy={controller}")
    only = tmp_path / "rechecked"
    here(harness_mdp.collect.main, *tiny[:3], f"buffer={only}", f"policy={controller}", "policy.recheck=0.5")
    alone = ReplayBuffer(only).tensors(SETTING)
    own = load_controller(controller, open_setting(SETTING)).probs_batch(
        DecisionBatch(alone.features, alone.mask, alone.base_action)
    )
    moved = 0.5 * own[:, Action.SUBMIT] * alone.mask[:, Action.CHECK]
    own[:, Action.SUBMIT] -= moved
    own[:, Action.CHECK] += moved
    np.testing.assert_allclose(alone.propensities, own, atol=1e-6)  # and no random action, which nobody asked for
    weights = hydra_value({"base": 0.4, str(controller): 0.5})
    here(harness_mdp.collect.main, *tiny, "policy=portfolio", f"policy.weights={weights}")
    grown = ReplayBuffer(buffer)
    assert set(grown.tensors(SETTING).policies) == {"epsilon", "bc", "portfolio"}
    behaviour = behaviour_policies(grown)  # rebuilt from the manifests: what ran is what they say
    assert all(behaviour(episode) is not None for episode in grown.episodes(phase="collect"))


def test_what_a_controller_alone_would_ignore_is_refused(controller: Path, tmp_path: Path) -> None:
    words = (f"setting={SETTING}", f"buffer={tmp_path}/b", f"policy={controller}")
    assert "give both" in refused("harness_mdp.collect", *words, "policy.explore=legal")
    assert "kind controller" in refused("harness_mdp.collect", *words, "policy.weights={base:0.3}")
    assert not list(tmp_path.iterdir())


def test_a_policy_that_is_neither_an_option_nor_a_folder_is_refused_with_both_named(tmp_path: Path) -> None:
    err = refused("harness_mdp.collect", f"setting={SETTING}", "policy=runs/nope", f"buffer={tmp_path}/b")
    assert "'runs/nope'" in err
    assert "check_revise" in err
    assert "folder of a saved controller" in err


def test_a_controllers_actions_count_as_sensible_and_it_may_join_a_mixture(mixed: Path, controller: Path) -> None:
    result = support(asked(mixed, policies=[str(controller)]))
    assert any(str(controller) in pair.proposed_by for pair in result.pairs)
    assert f"{controller}, ε = 0.1" in {each.name for each in result.additions}


def test_two_controllers_of_one_name_may_be_in_a_portfolio(controller: Path, mixed: Path, tmp_path: Path) -> None:
    second = tmp_path / "bc2"
    here(harness_mdp.train.main, f"setting={SETTING}", f"buffer={mixed}", "method=bc", "seed=1", f"out={second}")
    weights = {"base": 0.3, str(controller): 0.3, str(second): 0.3}
    policy = make_policy(PortfolioPolicyConfig(weights=weights), open_setting(SETTING))
    assert isinstance(policy, Portfolio)
    with pytest.raises(ConfigError, match="named once"):
        Portfolio([(policy.members[0][0], 0.5), (policy.members[0][0], 0.4)])


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-99, 99) | st.text("ab/.-_ ,:={}[]()'\\0", max_size=8),
        lambda inner: st.lists(inner, max_size=3),
    )
)
def test_a_value_in_words_is_read_back_by_hydra(value) -> None:
    assert OverridesParser.create().parse_override(f"key={hydra_value(value)}").value() == value


@settings(deadline=None)
@given(st.text("ab/.-_,:={}[]()\\", min_size=1, max_size=8))
def test_a_mapping_with_any_folder_as_key_is_read_back_by_hydra(key: str) -> None:
    assert OverridesParser.create().parse_override(f"key={hydra_value({key: 0.5})}").value() == {key: 0.5}


def _mixtures(row: dict) -> set[str]:
    return {each["mixture"] for each in row["visits_per_100_episodes"]}


def _read(path: Path) -> tuple[TrainingArrays, tuple[State, ...], object]:
    buffer = ReplayBuffer(path)
    arrays = buffer.tensors(next(iter(buffer.stats.counts))[0])
    states = logged_states(buffer, arrays)
    return arrays, states, worded_clusters(states, max(1, min(50, len(states) // 64)))


def _states(path: Path, known: dict[Path, tuple[State, ...]] = {}) -> tuple[State, ...]:  # noqa: B006  (a cache)
    if path not in known:
        known[path] = _read(path)[1]
    return known[path]


def _every_pair(labels: tuple[str, ...]) -> list[StatePair]:
    return [
        StatePair(cluster, label, action, 0, 0, 0, 0.0, (), 1)
        for cluster, label in enumerate(labels)
        for action in Action
    ]
