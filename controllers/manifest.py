"""The manifest of a saved controller: what it says, and whether it fits a setting (DESIGN section 8)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

from controllers.config import DecisionRule
from harness_mdp.errors import InputError, SchemaMismatch
from harness_mdp.hashing import Json
from harness_mdp.mdp import ACTIONS
from harness_mdp.settings.protocol import Setting

__all__ = [
    "FORMAT_VERSION",
    "MANIFEST_FILE",
    "RETRAIN",
    "Manifest",
    "check_setting",
    "manifest_json",
    "read_bytes",
    "read_manifest",
]

FORMAT = "harness-mdp controller"
FORMAT_VERSION = 1
MANIFEST_FILE = "manifest.json"
RETRAIN = "Train the controller again with this version, on a buffer of this setting"

_ACTION_LABELS = tuple(action.label for action in ACTIONS)


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
    config: dict[str, Json] = field(default_factory=dict[str, Json])
    metrics: dict[str, Json] = field(default_factory=dict[str, Json])
    """What training reported."""
    actions: tuple[str, ...] = _ACTION_LABELS
    weights_sha256: str = ""
    """Of the file; filled in when saving."""


def manifest_json(manifest: Manifest) -> str:
    """The text of `manifest.json`; `read_manifest` is the inverse."""
    document = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(manifest)}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_manifest(path: Path | str) -> Manifest:
    """The manifest in the folder `path`, validated.

    Raises:
        InputError, SchemaMismatch: as `load_controller`.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(
            "there is no such folder",
            file=folder,
            expected="a folder with manifest.json and weights.safetensors",
            remedy="Give the `out` folder of a training run",
        )
    file = folder / MANIFEST_FILE
    try:
        document: Json = json.loads(read_bytes(file))
    except ValueError as problem:
        raise InputError(f"is no JSON ({problem})", file=file, remedy=RETRAIN) from problem
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f"does not say {FORMAT!r} under 'format'", file=file, expected="a controller's manifest")
    values = cast("dict[str, Json]", document)
    if values.get("format_version") != FORMAT_VERSION:
        raise SchemaMismatch(
            f"{file}: format version is {values.get('format_version')}; this version reads {FORMAT_VERSION}. {RETRAIN}"
        )
    if tuple(values.get("actions", ())) != _ACTION_LABELS:
        raise SchemaMismatch(f"{file}: actions are {values.get('actions')}; expected {list(_ACTION_LABELS)}. {RETRAIN}")
    return _manifest(file, values)


def _manifest(file: Path, values: dict[str, Json]) -> Manifest:
    """Typed fields from parsed JSON; every field is required, unknown ones are refused."""
    known = set(Manifest.__dataclass_fields__)
    given = set(values) - {"format", "format_version"}
    if given != known:
        missing, extra = sorted(known - given), sorted(given - known)
        raise InputError(f"fields missing: {missing}, unknown: {extra}", file=file, remedy=RETRAIN)
    for name, (fits, expected) in _FIELDS.items():
        if not fits(values[name]):
            raise InputError(f"is {values[name]!r}", file=file, field=name, expected=expected, remedy=RETRAIN)
    typed = {name: values[name] for name in known}
    typed.update({name: tuple(values[name]) for name in ("feature_names", "executors", "actions")})
    typed["decision"] = DecisionRule(values["decision"])
    return Manifest(**typed)


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast("list[Json]", value))


def _is_object(value: Json) -> bool:
    return isinstance(value, dict)


def _is_whole(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_versions(value: Json) -> bool:
    return isinstance(value, dict) and all(map(_is_whole, cast("dict[str, Json]", value).values()))


_FIELDS: Mapping[str, tuple[Callable[[Json], bool], str]] = {
    "name": (_is_text, "a text"),
    "method": (_is_text, "a text"),
    "seed": (_is_whole, "a whole number"),
    "decision": (lambda value: value in list(DecisionRule), f"one of {', '.join(DecisionRule)}"),
    "feature_schema_id": (_is_text, "a text"),
    "feature_names": (_is_texts, "a list of texts"),
    "settings": (_is_versions, "a version number by setting"),
    "executors": (_is_texts, "a list of texts"),
    "buffer_path": (_is_text, "a text"),
    "buffer_version": (lambda value: value is None or _is_whole(value), "a whole number or null"),
    "config": (_is_object, "an object"),
    "metrics": (_is_object, "an object"),
    "weights_sha256": (_is_text, "64 hex digits"),
}
"""Field -> (what fits, in words)."""


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
            f"cannot be read ({problem.strerror})", file=file, remedy="A saved controller has both files"
        ) from problem
