"""Saved controllers: what is loaded decides as what was saved, and what does not fit is refused by name."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from controllers.config import DecisionRule
from controllers.network import MLPWeights, initial_weights
from controllers.policy import ControllerPolicy
from controllers.saved import load_controller, read_manifest, save_controller
from harness_mdp.errors import InputError, SchemaMismatch
from harness_mdp.features import FeatureSchema
from harness_mdp.mdp import DecisionBatch
from tests.saved_controllers import SCHEMA, edit, manifest, saved, setting


@settings(max_examples=40, deadline=None)
@given(
    d=st.integers(1, 6),
    hidden=st.integers(1, 9),
    seed=st.integers(0, 2**32),
    scale=st.floats(1e-3, 50),
    decision=st.sampled_from(DecisionRule),
    name=st.text(min_size=1, max_size=8).filter(lambda text: text.isprintable() and not text.isspace()),
)
def test_round_trip_keeps_decisions_manifest_and_fingerprint(tmp_path_factory, d, hidden, seed, scale, decision, name):
    rng = np.random.default_rng(seed)
    shapes = {"w1": (d, hidden), "b1": (hidden,), "w2": (hidden, 7), "b2": (7,)}
    weights = MLPWeights(**{k: (scale * rng.standard_normal(s)).astype(np.float32) for k, s in shapes.items()})
    folder = tmp_path_factory.mktemp("controllers") / "one"
    names = tuple(f"feature_{index}" for index in range(d))
    written = save_controller(
        folder, ControllerPolicy(weights), manifest(decision=decision, name=name, feature_names=names)
    )
    assert read_manifest(folder) == written

    before, after = ControllerPolicy(weights, decision, name), load_controller(folder)
    mask = rng.random((12, 7)) < 0.5
    mask[np.arange(12), rng.integers(0, 7, 12)] = True
    states = DecisionBatch(rng.random((12, d)).astype(np.float32), mask, np.zeros(12, np.int64))
    np.testing.assert_array_equal(before.probs_batch(states), after.probs_batch(states))
    assert (after.fingerprint, after.name, after.decision) == (before.fingerprint, name, decision)


def test_fingerprint_changes_with_weights_and_decision_rule_only():
    first, second = initial_weights(5, 8, seed=1), initial_weights(5, 8, seed=2)
    policies = [ControllerPolicy(w, rule) for w in (first, second) for rule in DecisionRule]
    assert len({policy.fingerprint for policy in policies}) == 4
    renamed = ControllerPolicy(initial_weights(5, 8, seed=1), DecisionRule.SAMPLE, "renamed")
    assert renamed.fingerprint == policies[0].fingerprint


def test_loads_for_its_own_setting(tmp_path):
    assert load_controller(saved(tmp_path / "c"), setting()).name == "aw"


def test_another_feature_schema_is_refused_with_the_names_that_differ(tmp_path):
    folder = saved(tmp_path / "c")
    other = setting(FeatureSchema("made_up", 3, ("one", "two", "three", "five")))
    with pytest.raises(SchemaMismatch, match=r"it lacks: \['flag_five'\], features unknown here: \['flag_four'\]"):
        load_controller(folder, other)
    swapped = setting(FeatureSchema("made_up", 3, ("two", "one", "three", "four")))
    with pytest.raises(SchemaMismatch, match="feature 27 is 'flag_one' there and 'flag_two' here"):
        load_controller(folder, swapped)
    with pytest.raises(SchemaMismatch, match=r"made_up version 4.*the setting's name or version is not"):
        load_controller(folder, setting(replace(SCHEMA, setting_version=4)))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"format_version": 3}, SchemaMismatch, "format version is 3; this version reads 2"),
        ({"format": "something else"}, InputError, "does not say"),
        ({"actions": ["observe", "submit"]}, SchemaMismatch, r"actions are \['observe', 'submit'\]"),
        ({"decision": "guess"}, InputError, "field 'decision'.*sample, greedy"),
        ({"seed": "four"}, InputError, "field 'seed'"),
        ({"surprise": 1}, InputError, r"unknown: \['surprise'\]"),
        ({"feature_names": ["a"]}, SchemaMismatch, "reads 31 features, the manifest names 1"),
        ({"weights_sha256": "0" * 64}, InputError, "weights.safetensors: SHA-256"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(tmp_path, changes, error, message):
    folder = saved(tmp_path / "c")
    edit(folder, **changes)
    with pytest.raises(error, match=message):
        load_controller(folder)


@pytest.mark.parametrize(
    ("array", "value", "message"),
    [
        ("b1", np.full(8, np.nan, np.float32), "b1 holds 8 of 8 values that are not finite"),
        ("w2", np.zeros((8, 5), np.float32), r"w2 has shape \(8, 5\); expected \(8, 7\)"),
        ("b2", np.zeros(7, np.float64), "b2 is float64; expected float32"),
        ("extra", np.zeros(1, np.float32), "arrays are"),
        ("b2", np.zeros(7, np.complex64), "b2 is complex64; expected float32"),
    ],
)
def test_weights_that_do_not_fit_are_refused(tmp_path, array, value, message):
    folder = saved(tmp_path / "c")
    file = folder / "weights.safetensors"
    save_file({**load_file(file), array: value}, file)
    edit(folder, weights_sha256=sha256(file))
    with pytest.raises(InputError, match=message):
        load_controller(folder)


def test_weights_that_are_no_safetensors_are_refused_and_never_unpickled(tmp_path):
    folder = saved(tmp_path / "c")
    file = folder / "weights.safetensors"
    file.write_bytes(b"\x80\x04cbuiltins\nexit\n.")  # as a pickle, this would end the interpreter
    edit(folder, weights_sha256=sha256(file))
    with pytest.raises(InputError, match=r"weights.safetensors"):
        load_controller(folder)


def test_a_dtype_that_numpy_does_not_have_is_refused(tmp_path):
    folder = saved(tmp_path / "c")
    file = folder / "weights.safetensors"
    header = json.dumps({"w1": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}).encode()
    file.write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    edit(folder, weights_sha256=sha256(file))
    with pytest.raises(InputError, match=r"weights\.safetensors: holds the dtype 'BF16'; expected the arrays"):
        load_controller(folder)


def test_missing_pieces_are_named(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        load_controller(tmp_path / "nowhere")
    folder = saved(tmp_path / "c")
    (folder / "weights.safetensors").unlink()
    with pytest.raises(InputError, match=r"weights.safetensors: cannot be read"):
        load_controller(folder)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"manifest.json: is no JSON"):
        load_controller(folder)


def test_weights_and_feature_names_must_agree_when_saving(tmp_path):
    with pytest.raises(SchemaMismatch, match="reads 4 features, the manifest names 31"):
        save_controller(tmp_path / "c", ControllerPolicy(initial_weights(4, 8, seed=1)), manifest())
    assert not (tmp_path / "c").exists()


def sha256(file: Path) -> str:
    from hashlib import sha256 as of

    return of(file.read_bytes()).hexdigest()
