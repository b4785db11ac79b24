"""Manifests of saved controllers: whatever is in the file, it is read or refused by field, in words."""

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.config import DecisionRule
from controllers.saved import Manifest, learner_key, load_controller, read_manifest
from harness_mdp.errors import InputError, SchemaMismatch
from tests.saved_controllers import manifest, saved

FIELDS = [field.name for field in fields(Manifest)]

nested = [1]
for _ in range(500):
    nested = [nested]

ODD = [5, -5, 0.5, True, None, "", "a\nb", "\ud800", "a\0", [], [5], [[]], ["a", None], {}, {"": 1}, {"a": 1.5}]
ODD += [float("nan"), float("inf"), 10**30, [float("nan")], {"a": {"b": [float("-inf")]}}, {"a": 10**30}, nested]

values = st.recursive(
    st.sampled_from(ODD) | st.text(st.characters()) | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("controllers") / "c")


@pytest.fixture(scope="module")
def document(folder):
    return json.loads((folder / "manifest.json").read_text())


def put(folder, document) -> None:
    (folder / "manifest.json").write_text(json.dumps(document))


def refusal(folder) -> str | None:
    """Why the controller is refused; None if it is read. Any other error is the test's failure."""
    try:
        load_controller(folder)
        learner_key(read_manifest(folder))
    except (InputError, SchemaMismatch) as problem:
        return str(problem)
    return None


@settings(max_examples=400, deadline=None)
@given(changes=st.dictionaries(st.sampled_from([*FIELDS, "format", "format_version", "other"]), values, min_size=1))
def test_a_changed_manifest_is_read_or_refused_in_words(folder, document, changes):
    put(folder, {**document, **changes})
    said = refusal(folder)
    assert said is None or "manifest.json" in said or "weights.safetensors" in said
    assert said is None or len(said) < 1500


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_manifest_with_changed_bytes_is_read_or_refused_in_words(folder, document, data):
    put(folder, document)
    content = (folder / "manifest.json").read_bytes()
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 20)))
    (folder / "manifest.json").write_bytes(content[:start] + data.draw(st.binary(max_size=6)) + content[end:])
    said = refusal(folder)
    assert said is None or "manifest.json" in said or "weights.safetensors" in said


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("value", [5.5, [[5]], {"a": float("nan")}, nested], ids=["number", "list", "object", "nested"])
def test_a_wrong_type_is_refused_by_file_and_field(folder, document, name, value):
    put(folder, {**document, name: value})
    with pytest.raises(InputError, match=rf"manifest\.json, field '{name}': .*; expected "):
        read_manifest(folder)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("actions", 5, "is 5; expected a list"),
        ("seed", True, "is True; expected a whole number"),
        ("seed", 10**30, "at most 64 bits"),
        ("buffer_version", -1, "is -1; expected a version number or null"),
        ("settings", {"coding": -1}, "expected a version number by setting"),
        ("weights_sha256", "abc", "is 'abc'; expected 64 hex digits"),
        ("decision", ["sample"], "expected one of sample, greedy"),
        ("task_hashes", ["ab", "ab"], "expected a list of distinct task hashes"),
        ("name", "two\nlines", "expected a line of text"),
        ("config", {"beta": [1.0, float("inf")]}, r"holds inf at beta\[1\]; expected"),
        ("metrics", {"a": {"loss": float("nan")}}, r"holds nan at a\.loss; expected"),
        ("metrics", {"text": "\ud800"}, r"holds '\\ud800' at text"),
        ("metrics", {"deep": nested}, "is nested more than 32 deep"),
        ("feature_names", ["x" * 10**6, 5], r"xxx\.\.\.xxx"),
    ],
)
def test_what_is_wrong_is_said(folder, document, name, value, message):
    put(folder, {**document, name: value})
    with pytest.raises(InputError, match=rf"field '{name}': .*{message}") as problem:
        read_manifest(folder)
    assert len(str(problem.value)) < 1000


@pytest.mark.parametrize("value", ["1" * 5000, "1" * 150, "1e999", "-Infinity", "9" * 30])
@pytest.mark.parametrize("name", ["seed", "config"])
def test_numbers_that_are_too_large_are_refused_by_field(folder, document, name, value):
    text = json.dumps({**document, name: "HERE" if name == "seed" else {"beta": "HERE"}})
    (folder / "manifest.json").write_text(text.replace('"HERE"', value))
    with pytest.raises(InputError, match=f"field '{name}'"):
        read_manifest(folder)


@pytest.mark.parametrize("version", [True, 1.0, "1", None, [1]])
def test_a_format_version_that_is_no_whole_number_is_refused(folder, document, version):
    put(folder, {**document, "format_version": version})
    with pytest.raises(SchemaMismatch, match="this version reads 2"):
        read_manifest(folder)


def test_endless_nesting_is_refused(folder):
    (folder / "manifest.json").write_text("[" * 200_000)
    with pytest.raises(InputError, match=r"manifest\.json: is nested too deep"):
        read_manifest(folder)


def test_the_tasks_it_learned_from_are_kept_and_required(tmp_path):
    folder = saved(tmp_path / "c", task_hashes=("b" * 64, "c" * 64))
    assert read_manifest(folder).task_hashes == ("b" * 64, "c" * 64)
    written = json.loads((folder / "manifest.json").read_text())
    del written["task_hashes"]
    put(folder, written)
    with pytest.raises(InputError, match=r"fields missing: \['task_hashes'\]"):
        read_manifest(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("metrics", {"loss": float("nan")}),
        ("config", {"beta": object()}),
        ("buffer_path", "runs/\udcff"),
        ("name", ""),
        ("seed", 2**70),
        ("settings", {"coding": "3"}),
    ],
)
def test_what_could_not_be_read_again_is_not_saved(tmp_path, name, value):
    folder = saved(tmp_path / "c")
    with pytest.raises(InputError, match=rf"c/manifest\.json, field '{name}'"):
        saved(folder, **{name: value})
    assert read_manifest(folder).seed == 4
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_what_is_saved_is_equal_when_read_whatever_its_texts(tmp_path):
    metrics = {"loss": [1.5, 2], "what": {"ü\t\n": None, "deep": [[True, 2**63 - 1]]}}
    folder = saved(tmp_path / "c", buffer_path="läufe/\n«buffer»", buffer_version=None, metrics=metrics, seed=-3)
    read = read_manifest(folder)
    assert (read.buffer_path, read.buffer_version, read.metrics, read.seed) == ("läufe/\n«buffer»", None, metrics, -3)


def test_controllers_that_differ_in_their_training_seed_only_share_a_learner_key(tmp_path):
    one, other = (read_manifest(saved(tmp_path / str(seed), seed=seed, metrics={"loss": seed})) for seed in (4, 5))
    assert learner_key(one) == learner_key(other)
    assert learner_key(one) == learner_key(replace(one, name="a label", weights_sha256="0" * 64))
    assert learner_key(one) == learner_key(replace(one, config={**one.config, "seed": 9}))
    assert learner_key(one) == learner_key(replace(one, task_hashes=one.task_hashes[::-1]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("method", "bc"),
        ("decision", DecisionRule.GREEDY),
        ("config", {**manifest().config, "beta": 0.3}),
        ("feature_schema_id", "0" * 16),
        ("feature_names", manifest().feature_names[::-1]),
        ("settings", {"made_up": 4}),
        ("executors", ("simulated:weak",)),
        ("buffer_path", "runs/other"),
        ("buffer_version", 8),
        ("buffer_version", None),
        ("task_hashes", manifest().task_hashes[:1]),
        ("task_hashes", ()),
    ],
)
def test_any_other_difference_changes_the_learner_key(name, value):
    assert learner_key(manifest()) != learner_key(manifest(**{name: value}))
