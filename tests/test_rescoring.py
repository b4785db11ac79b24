"""Maturity of a stored buffer scored again: beside what is there, never over it, once per config, no executor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from polars.testing import assert_frame_equal

from buffers import ReplayBuffer
from buffers.location import Location
from buffers.log import create_log
from experiments.config import ScoreConfig
from experiments.maturity_keys import MaturityPresetConfig
from experiments.register import register_configs
from experiments.scoring import maturity_config, score, stored_preset
from harness_mdp.errors import ConfigError, InputError, UnusableBuffer
from harness_mdp.mdp import Action, Artifact, EvalStatus, Event, Termination
from harness_mdp.scoring.maturity import PRESETS, MaturityConfig, MaturityEvent, score_episode
from harness_mdp.settings import open_setting
from tests.commands import command, start
from tests.episodes import MADE_UP, MadeUpSetting, episode, episodes
from tests.maturity_frames import verdicts

EVENTS = [event.value for event in MaturityEvent]
PAPER, STRICT = PRESETS["paper"], PRESETS["strict"]
LATER = replace(PAPER, early_share=0.35)


def made_up(name: str) -> MadeUpSetting:
    """`made_up`, or the same where code is tested."""
    return replace(MADE_UP, name=name, tests_code=name == "made_up_code")


@pytest.fixture
def buffer(tmp_path: Path) -> ReplayBuffer:
    """150 made-up episodes of two settings, of which one has no step."""
    buffer = ReplayBuffer(tmp_path / "buffer")
    code = episodes(70, setting=MadeUpSetting("made_up_code", tests_code=True))
    empty = replace(episode(999), steps=(), termination=Termination.BUDGET)
    buffer.append([*episodes(79), *code, empty])
    return buffer


@pytest.mark.parametrize("config", [PAPER, STRICT, LATER], ids=["paper", "strict", "changed"])
def test_scores_are_those_of_the_rules_one_by_one(buffer: ReplayBuffer, config: MaturityConfig) -> None:
    assert buffer.rescore(config, made_up) == 150
    rows = {row["episode_id"]: row for row in buffer.harness.rescores.frame(config.hash).iter_rows(named=True)}
    for stored in buffer.episodes():
        scored = score_episode(replace(stored, maturity={}, maturity_events=()), made_up(stored.setting), [config])
        expected = tuple((applicable, fired) for _, _, applicable, fired in scored.maturity_events)
        assert verdicts(rows[stored.episode_id]) == (scored.maturity.get(config.preset), expected)


def test_the_same_config_again_adds_nothing_and_another_is_added_beside(buffer: ReplayBuffer) -> None:
    episodes_before = list(DeltaTable(buffer.path).to_pyarrow_table().column("episode_id").to_pylist())
    version = buffer.version
    assert buffer.rescore(PAPER, made_up) == 150
    first = buffer.harness.rescores.frame(PAPER.hash)
    assert buffer.rescore(PAPER, made_up) == 0
    assert buffer.rescore(replace(PAPER), made_up) == 0
    assert buffer.rescore(LATER, made_up) == buffer.rescore(STRICT, made_up) == 150
    assert_frame_equal(buffer.harness.rescores.frame(PAPER.hash), first)
    assert buffer.harness.rescores.frame().height == 450
    assert {h: c["early_share"] for h, c in buffer.harness.rescores.configs().items()} == {
        PAPER.hash: 0.25,
        LATER.hash: 0.35,
        STRICT.hash: 0.25,
    }
    assert buffer.version == version
    assert DeltaTable(buffer.path).to_pyarrow_table().column("episode_id").to_pylist() == episodes_before


def test_only_new_episodes_are_scored_when_a_buffer_grew(buffer: ReplayBuffer) -> None:
    buffer.rescore(PAPER, made_up)
    buffer.append(episodes(90))  # 79 of them are there
    assert buffer.rescore(PAPER, made_up) == 11
    assert buffer.harness.rescores.frame()["episode_id"].n_unique() == 161


def test_scores_added_twice_are_kept_once_as_they_were_first(buffer: ReplayBuffer) -> None:
    buffer.rescore(PAPER, made_up)
    before = buffer.harness.rescores.frame()
    other = before.select("episode_id", "hms", *EVENTS).with_columns(hms=pl.lit(0.125))
    assert buffer.harness.rescores.add(other, PAPER) == 0
    assert_frame_equal(buffer.harness.rescores.frame(), before)


def test_vacuum_keeps_re_scores(buffer: ReplayBuffer) -> None:
    buffer.rescore(PAPER, made_up)
    buffer.compact()
    buffer.vacuum(0)
    assert buffer.harness.rescores.frame().height == 150


def test_re_scores_are_read_beside_their_episodes(buffer: ReplayBuffer) -> None:
    assert buffer.rescores_df().height == 0
    buffer.rescore(PAPER, made_up)
    buffer.rescore(STRICT, made_up)
    frame = buffer.rescores_df(setting="made_up")
    assert frame.height == 160
    assert {"return", "policy", "maturity_paper", "preset", "config_hash", "hms", *EVENTS} <= set(frame.columns)
    assert frame.group_by("preset").len().sort("preset").rows() == [("paper", 80), ("strict", 80)]
    assert len(buffer.rescores_df("pandas", config_hash=STRICT.hash)) == 150
    assert frame.filter(pl.col("TestBeforeSubmit").is_not_null()).is_empty()


def test_a_damaged_table_of_re_scores_is_named_and_episodes_are_not_affected(buffer: ReplayBuffer) -> None:
    buffer.rescore(PAPER, made_up)
    log = buffer.harness.rescores.path / "_delta_log" / f"{0:020}.json"
    log.write_text("{")
    with pytest.raises(UnusableBuffer, match=r"_harness/rescores: the re-scores of maturity cannot be read"):
        buffer.rescore(PAPER, made_up)
    assert buffer.episodes_df().height == 150


# -- a threshold at its boundary ---------------------------------------------------------------------------------------


def submitted_after(before: int) -> list[Event]:
    """`before` steps, then the submit of a draft without a claim."""
    draft = Event(Action.DRAFT, artifact=Artifact(1, "0" * 64, 10))
    return [*[Event(Action.OBSERVE, evidence=("e",))] * (before - 1), draft, Event(Action.SUBMIT)]


def poor(before: int, index: int) -> object:
    """An episode of planning with Q = 0.4 and no criterion missed, submitted after `before` of 20 steps."""
    made = episode(index)
    step = made.steps[0]
    steps = [replace(step, t=t, event=e, action=e.action) for t, e in enumerate(submitted_after(before), start=1)]
    unscored = replace(
        made,
        setting="planning",
        horizon=20,
        eval_status=EvalStatus.SCORED,
        termination=Termination.SUBMIT,
        return_=0.4,
        rubric=(("a", 0.6, 1.0),),
        maturity={},
        maturity_events=(),
        steps=tuple(steps),
    )
    return score_episode(unscored, open_setting("planning"), (PAPER, STRICT))


@pytest.fixture
def boundary(tmp_path: Path) -> Path:
    """Poor episodes submitted after 4 .. 9 of 20 steps: a quarter is 5 steps, a share of 0.35 is 7."""
    ReplayBuffer(tmp_path / "boundary").append([poor(before, before) for before in range(4, 10)])  # type: ignore[misc]
    return tmp_path / "boundary"


def early(frame: pl.DataFrame) -> dict[int, bool]:
    """Steps before the submit -> whether EarlySubmit fired."""
    return dict(frame.select(pl.col("n_steps").cast(pl.Int64) - 1, "EarlySubmit").rows())


def test_a_threshold_changes_only_what_lies_between_the_old_and_the_new_one(boundary: Path) -> None:
    buffer = ReplayBuffer(boundary)
    buffer.rescore(PAPER)
    buffer.rescore(LATER)
    old, new = (buffer.rescores_df(config_hash=config.hash).sort("episode_id") for config in (PAPER, LATER))
    assert early(old) == {4: True, 5: True, 6: False, 7: False, 8: False, 9: False}
    assert early(new) == {4: True, 5: True, 6: True, 7: True, 8: False, 9: False}
    untouched = [name for name in EVENTS if name != "EarlySubmit"]
    assert_frame_equal(old.select(untouched), new.select(untouched))
    moved = old.select("n_steps", was=old["hms"], now=new["hms"]).filter(pl.col("was") != pl.col("now"))
    assert set(moved["n_steps"]) == {7, 8}
    assert (moved["now"] < moved["was"]).all()


def test_the_command_scores_beside_and_says_what_changed(boundary: Path) -> None:
    changed = (f"buffer={boundary}", "maturity.early_submit.step_share=0.35")
    out, _ = command("harness_mdp.score", *changed)
    assert "6: 6 scored" in out
    assert "early_submit.step_share=0.35" in out
    assert "0.333 -> 0.667 (n 6)" in out
    assert "for maturity against quality use maturity=strict" in out
    again, _ = command("harness_mdp.score", *changed)
    assert "nothing added" in again
    assert ReplayBuffer(boundary).rescores_df().height == 6


def test_strict_does_not_ask_for_the_step_share_and_the_command_says_so(boundary: Path) -> None:
    out, _ = command(
        "harness_mdp.score", f"buffer={boundary}", "maturity=strict", "maturity.early_submit.step_share=0.35"
    )
    assert "early_submit.step_share changes nothing here" in out
    assert "may be set against quality" in out
    scoring = score(ScoreConfig(str(boundary), keys(["maturity=strict", "maturity.early_submit.step_share=0.35"])))
    assert [group.differ for group in scoring.groups] == [0]
    assert scoring.added == 0


# -- collected episodes ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Episodes of a setting that tests code and of one with claims, scored while they were collected."""
    buffer = tmp_path_factory.mktemp("collected") / "buffer"
    for setting in ("coding", "research"):
        command("harness_mdp.collect", f"setting={setting}", "setting.tasks=20", "rollouts=3", f"buffer={buffer}")
    return buffer


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_gives_what_was_stored_at_collection(collected: Path, preset: str) -> None:
    scoring = score(ScoreConfig(str(collected), keys([f"maturity={preset}"])))
    assert scoring.episodes == 96
    assert [(group.setting, group.n, group.differ) for group in scoring.groups] == [
        ("coding", 48, 0),
        ("research", 48, 0),
    ]
    for group in scoring.groups:
        assert group.hms == group.stored_hms
        assert all(rate.rate == rate.stored for rate in group.events)
    stored = {e.episode_id: e for e in ReplayBuffer(collected).episodes()}
    frame = ReplayBuffer(collected).harness.rescores.frame(PRESETS[preset].hash)
    assert frame.height == 96
    for row in frame.iter_rows(named=True):
        episode = stored[row["episode_id"]]
        kept = tuple((applies, fired) for name, _, applies, fired in episode.maturity_events if name == preset)
        assert verdicts(row) == (episode.maturity.get(preset), kept)


def test_two_processes_with_the_same_config_add_every_score_once(collected: Path) -> None:
    arguments = (f"buffer={collected}", "maturity.stop_when_sufficient.score=0.8")
    both = [start("harness_mdp.score", *arguments) for _ in range(2)]
    for process in both:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, out + err
    wanted = maturity_config(keys(["maturity.stop_when_sufficient.score=0.8"]))
    frame = ReplayBuffer(collected).harness.rescores.frame(wanted.hash)
    assert frame.height == frame["episode_id"].n_unique() == 96


# -- configuration -----------------------------------------------------------------------------------------------------


def keys(overrides: list[str]) -> MaturityPresetConfig:
    """The group `maturity` as Hydra composes it."""
    register_configs()
    with initialize_config_module("experiments.conf", version_base="1.3"):
        composed = compose("score", ["buffer=x", *overrides])
    found = OmegaConf.to_object(composed.maturity)
    assert isinstance(found, MaturityPresetConfig)
    return found


@pytest.mark.parametrize("preset", PRESETS)
def test_the_files_hold_the_presets(preset: str) -> None:
    assert maturity_config(keys([f"maturity={preset}"])).hash == PRESETS[preset].hash
    assert stored_preset(keys([f"maturity={preset}"])) == preset


def test_every_key_reaches_its_own_threshold() -> None:
    names = {
        "check_of_submitted_version=true": "check_of_submitted_version",
        "check_before_submit.min_gap=7": "failed_check_gap",
        "evidence_before_claim.supported_share=0.11": "claims_supported",
        "test_before_submit.min_gap=7": "failed_test_gap",
        "revision_after_failure.window=7": "revision_window",
        "valid_tool_use.valid_share=0.11": "valid_tool_share",
        "stop_when_sufficient.score=0.11": "sufficient_score",
        "stop_when_sufficient.max_age=7": "sufficient_age",
        "early_submit.reads_quality=false": "early_reads_quality",
        "early_submit.quality=0.11": "early_quality",
        "early_submit.step_share=0.11": "early_share",
        "early_submit.criterion=0.11": "missed_criterion",
        "early_submit.missed_share=0.11": "missed_share",
        "early_submit.pass_rate=0.11": "early_pass_rate",
        "preset=mine": "preset",
    }
    values = PAPER.values
    assert {*names.values(), "weights"} == {entry.name for entry in fields(MaturityConfig)}
    for key, name in names.items():
        changed = maturity_config(keys([f"maturity.{key}"])).values
        assert {n for n in values if changed[n] != values[n]} == {name}, key
    for event in MaturityEvent:
        changed = maturity_config(keys([f"maturity.weights.{event.name.lower()}=2"]))
        assert [e for e in MaturityEvent if changed.weight(e) != 1] == [event]


@pytest.mark.parametrize(
    ("override", "named"),
    [
        (
            "maturity.early_submit.step_share=-0.1",
            ["maturity.early_submit.step_share=-0.1: a maturity threshold is -0.1", "0 to 1"],
        ),
        ("maturity.revision_after_failure.window=-1", ["maturity.revision_after_failure.window=-1", "at least 0"]),
        ("maturity.weights.early_submit=-2", ["maturity.weights.early_submit=-2", "at least 0"]),
        ("maturity.early_submit.share=0.3", ["maturity.early_submit.share"]),
        ("maturity.check_before_submit.min_gap=some", ["maturity.check_before_submit.min_gap", "some"]),
        ("maturity=lenient", ["lenient", "paper, strict"]),
    ],
)
def test_a_configuration_that_cannot_be_is_refused_by_key(boundary: Path, override: str, named: list[str]) -> None:
    _, err = command("harness_mdp.score", f"buffer={boundary}", override, expect=2)
    assert "Traceback" not in err
    for text in named:
        assert text in err
    assert ReplayBuffer(boundary).rescores_df().height == 0


def test_scores_that_read_quality_never_carry_the_label_strict() -> None:
    with pytest.raises(ConfigError, match="label strict"):
        maturity_config(keys(["maturity=strict", "maturity.early_submit.reads_quality=true"]))


def test_evaluation_shows_stored_presets_only() -> None:
    with pytest.raises(ConfigError, match=r"early_submit.step_share: only the presets paper, strict are stored"):
        stored_preset(keys(["maturity.early_submit.step_share=0.35"]))
    with pytest.raises(ConfigError, match="another label"):
        stored_preset(keys(["maturity.preset=mine"]))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda path: None, InputError, "there is no buffer here"),
        (lambda path: path.mkdir(), UnusableBuffer, "the buffer is empty"),
        (lambda path: create_log(Location(str(path))), UnusableBuffer, "holds no episodes; collect first"),
    ],
    ids=["no folder", "no table", "no episode"],
)
def test_nothing_to_score_is_said(
    tmp_path: Path, make: Callable[[Path], None], error: type[Exception], message: str
) -> None:
    make(tmp_path / "buffer")
    with pytest.raises(error, match=message):
        score(ScoreConfig(str(tmp_path / "buffer")))
    assert not (tmp_path / "buffer" / "_harness").exists()
