"""The manifest of a saved controller: what it says, and whether it fits a setting (DESIGN section 8)."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import cast

from controllers.config import DecisionRule
from controllers.manifest_fields import check_fields, shown
from harness_mdp.errors import InputError, SchemaMismatch
from harness_mdp.hashing import Json, digest
from harness_mdp.mdp import ACTIONS
from harness_mdp.settings.protocol import Setting

__all__ = [
    "FORMAT_VERSION",
    "MANIFEST_FILE",
    "RETRAIN",
    "Manifest",
    "check_setting",
    "is_controller_manifest",
    "learner_key",
    "manifest_json",
    "read_bytes",
    "read_manifest",
]

FORMAT = "harness-mdp controller"
FORMAT_VERSION = 2
MANIFEST_FILE = "manifest.json"
RETRAIN = "Train the controller again with this version, on a buffer of this setting"

_ACTION_LABELS = tuple(action.label for action in ACTIONS)
_TUPLES = ("feature_names", "executors", "task_hashes", "actions")
_READABLE = "Check the path and its permissions, or give the `out` folder of another training run"


@dataclass(frozen=True)
class Manifest:
    """Everything about a controller but its weights."""

    name: str
    """Short name for tables, e.g. `aw`."""
    method: str
    seed: int
    """Training seed."""
    decision: DecisionRule
    feature_schema_id: str
    feature_names: tuple[str, ...]
    """d names, in order."""
    settings: dict[str, int]
    """Version by setting that it was trained on."""
    executors: tuple[str, ...]
    """Fingerprints of the executors whose episodes it learned from."""
    buffer_path: str
    buffer_version: int | None
    """Delta table version that was read; None for a dataset that is not a buffer."""
    task_hashes: tuple[str, ...] = ()
    """Hashes of the tasks it learned from, distinct; empty if they are not known."""
    folds: tuple[tuple[str, ...], ...] = ()
    """For each task-fold controller in the file, the tasks that it did not learn from."""
    config: dict[str, Json] = field(default_factory=dict[str, Json])
    metrics: dict[str, Json] = field(default_factory=dict[str, Json])
    """What training reported."""
    kind: str = "network"
    """What the arrays are, see `kinds.KINDS`; filled in when saving."""
    actions: tuple[str, ...] = _ACTION_LABELS
    weights_sha256: str = ""
    """Of the file; filled in when saving."""


def manifest_json(manifest: Manifest, file: Path) -> str:
    """The text of `manifest.json`, to be written to `file`; `read_manifest` is the inverse.

    Raises:
        InputError: a field that `read_manifest` would refuse.
    """
    values = {field.name: getattr(manifest, field.name) for field in fields(manifest)}
    check_fields(values, file)
    document = {"format": FORMAT, "format_version": FORMAT_VERSION, **values}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_manifest(path: Path | str) -> Manifest:
    """The manifest in the folder `path`, validated.

    Raises:
        InputError, SchemaMismatch: as `load_controller`.
    """
    folder = Path(path)
    try:
        there = folder.is_dir()
    except OSError as problem:
        raise InputError(f"cannot be looked into ({problem.strerror})", file=folder, remedy=_READABLE) from problem
    if not there:
        raise InputError(
            "there is no such folder",
            file=folder,
            expected="a folder with manifest.json and weights.safetensors",
            remedy="Give the `out` folder of a training run",
        )
    file = folder / MANIFEST_FILE
    try:
        document: Json = json.loads(read_bytes(file), parse_int=_number)
    except ValueError as problem:
        raise InputError(f"is no JSON ({problem})", file=file, remedy=RETRAIN) from problem
    except RecursionError as problem:
        raise InputError(
            "is nested too deep", file=file, expected="a controller's manifest", remedy=RETRAIN
        ) from problem
    if not isinstance(document, dict) or cast("dict[str, Json]", document).get("format") != FORMAT:
        raise InputError(f"does not say {FORMAT!r} under 'format'", file=file, expected="a controller's manifest")
    values = cast("dict[str, Json]", document)
    del values["format"]
    version = values.pop("format_version", None)
    if type(version) is not int or version != FORMAT_VERSION:
        raise SchemaMismatch(
            f"{file}: format version is {shown(version)}; this version reads {FORMAT_VERSION}. {RETRAIN}"
        )
    check_fields(values, file, RETRAIN)
    values.update({name: tuple(values[name]) for name in _TUPLES})
    values["folds"] = tuple(tuple(hashes) for hashes in values["folds"])
    values["decision"] = DecisionRule(values["decision"])
    manifest = Manifest(**values)
    if manifest.actions != _ACTION_LABELS:
        raise SchemaMismatch(
            f"{file}: actions are {shown(list(manifest.actions))}; expected {list(_ACTION_LABELS)}. {RETRAIN}"
        )
    return manifest


def _number(digits: str) -> int | float:
    """Python refuses to parse very many digits, without a word on where; as infinity they are refused by field."""
    return int(digits) if len(digits) < 100 else math.inf


def is_controller_manifest(file: Path) -> bool:
    """Whether `file` says that it is a controller's, of whatever version; many programs name a file so.

    Raises:
        InputError: it cannot be read.
    """
    try:
        document: Json = json.loads(read_bytes(file), parse_int=_number)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and cast("dict[str, Json]", document).get("format") == FORMAT


def learner_key(manifest: Manifest) -> str:
    """16 hex digits that two controllers share exactly if they differ in nothing but their training seed.

    Covers method, decision rule, configuration, features, settings, executors, buffer with its version, and the
    tasks learned from. Left out beside the seed is what follows from it (weights, metrics) and the name for tables.
    Paths count as they are written: `buffer` and `./buffer` are two.
    """
    return digest(
        {
            "method": manifest.method,
            "decision": manifest.decision.value,
            "config": {key: value for key, value in manifest.config.items() if key != "seed"},
            "feature_schema_id": manifest.feature_schema_id,
            "feature_names": list(manifest.feature_names),
            "actions": list(manifest.actions),
            "settings": manifest.settings,
            "executors": sorted(manifest.executors),
            "buffer_path": manifest.buffer_path,
            "buffer_version": manifest.buffer_version,
            "task_hashes": sorted(manifest.task_hashes),
        },
        16,
    )


def check_setting(folder: Path, manifest: Manifest, setting: Setting) -> None:
    """Refuses a controller that does not fit `setting`.

    Raises:
        SchemaMismatch: names the features, or the setting and version, that differ.
    """
    schema = setting.schema
    if manifest.feature_schema_id == schema.id and manifest.feature_names == schema.names:
        return
    ours, theirs = manifest.feature_names, schema.names
    lacking = [name for name in theirs if name not in ours]
    unknown = [name for name in ours if name not in theirs]
    if lacking or unknown:
        difference = f"features it lacks: {lacking}, features unknown here: {unknown}"
    elif ours != theirs:
        moved = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
        difference = f"feature {moved} is {ours[moved]!r} there and {theirs[moved]!r} here"
    else:
        difference = "the feature names are the same, the setting's name or version is not"
    raise SchemaMismatch(
        f"{folder}: made for {manifest.settings}, feature schema {manifest.feature_schema_id}; "
        f"setting {setting.name} version {setting.version} has schema {schema.id} ({difference}). {RETRAIN}"
    )


def read_bytes(file: Path) -> bytes:
    """The content of one of the two files; raises InputError where it cannot be read."""
    try:
        return file.read_bytes()
    except OSError as problem:
        raise InputError(
            f"cannot be read ({problem.strerror})",
            file=file,
            expected="a saved controller, which has manifest.json and weights.safetensors",
            remedy=_READABLE,
        ) from problem
