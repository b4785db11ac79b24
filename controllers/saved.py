"""Saved controllers: a folder with `weights.safetensors` and `manifest.json` (DESIGN section 8).

Loading reads JSON and raw arrays, never pickles, and refuses by name whatever does not fit.
"""

from __future__ import annotations

import errno
import hashlib
import os
from dataclasses import replace
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from controllers.manifest import (
    MANIFEST_FILE,
    RETRAIN,
    Manifest,
    check_setting,
    is_controller_manifest,
    learner_key,
    manifest_json,
    read_bytes,
    read_manifest,
)
from controllers.network import MLPWeights
from controllers.policy import ControllerPolicy
from controllers.replacing import replace_folder
from harness_mdp.errors import InputError, SchemaMismatch
from harness_mdp.settings.protocol import Setting

__all__ = ["Manifest", "check_target", "learner_key", "load_controller", "read_manifest", "save_controller"]

WEIGHTS_FILE = "weights.safetensors"

_FILES = (MANIFEST_FILE, WEIGHTS_FILE)
_ELSEWHERE = "Choose another folder"
_ROOM = "Make room on that disk, or choose a folder on another one"
_RIGHTS = "Choose a folder that you may write to, or have its permissions changed"
_REMEDIES = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: _ROOM,
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: _RIGHTS,
    errno.ENOTDIR: "A part of this path is a file; choose another folder",
    errno.EEXIST: "A part of this path is a file; choose another folder",
}


def save_controller(path: Path | str, weights: MLPWeights, manifest: Manifest) -> Manifest:
    """Writes the folder `path` and returns the manifest as written.

    The folder is made whole beside its place and then renamed into it: at any moment `path` is the old
    controller, the new one or nothing, never a mixture. A saved controller that is there is replaced; anything
    else that is there is left alone and refused (see `check_target`). A link is followed.

    Raises:
        SchemaMismatch: weights and manifest do not fit together.
        InputError: `path` is there and is no controller, it cannot be written, or a field of the manifest could not
            be read again. What was at `path` before is still there, unless the message says that the new one is in
            its place.
    """
    target = check_target(path)
    if weights.n_features != len(manifest.feature_names):
        raise SchemaMismatch(
            f"the network reads {weights.n_features} features, the manifest names {len(manifest.feature_names)}"
        )
    content = save_tensors(weights.tensors())
    written = replace(manifest, weights_sha256=hashlib.sha256(content).hexdigest())
    text = manifest_json(written, target / MANIFEST_FILE)
    try:
        replace_folder(target, {WEIGHTS_FILE: content, MANIFEST_FILE: text.encode()})
    except OSError as problem:
        raise _unwritable(target, problem) from problem
    return written


def check_target(path: Path | str) -> Path:
    """The absolute folder that `path` means, if a controller may be saved there; before training it spares the work.

    That is a folder that is not there yet, an empty one, or a saved controller: a `manifest.json` that says so and
    nothing beside it but `weights.safetensors`.

    Raises:
        InputError: something else is there, by name, or it cannot be looked into. Nothing is touched.
    """
    if "\0" in str(path):
        raise InputError("a path cannot hold NUL", file=repr(str(path)), remedy="Choose another folder")
    target = Path(os.path.realpath(path))
    try:
        if not target.exists():
            return target
        if not target.is_dir():
            raise InputError("is a file", file=target, expected="a folder for a controller", remedy=_ELSEWHERE)
        entries = sorted(target.iterdir())
        foreign = [entry.name for entry in entries if entry.name not in _FILES or not entry.is_file()]
    except OSError as problem:
        raise _unwritable(target, problem) from problem
    if not foreign and entries:
        manifest = target / MANIFEST_FILE
        if manifest not in entries:
            foreign = [entry.name for entry in entries]
        elif not is_controller_manifest(manifest):
            foreign = [f"a {MANIFEST_FILE} that is no controller's"]
    if foreign:
        more = f" and {len(foreign) - 5} more" if len(foreign) > 5 else ""
        raise InputError(
            f"is no saved controller and is not replaced; it holds {', '.join(foreign[:5])}{more}",
            file=target,
            expected=f"a new or empty folder, or one with a controller's {' and '.join(_FILES)} and nothing else",
            remedy=_ELSEWHERE,
        )
    return target


def load_controller(path: Path | str, setting: Setting | None = None) -> ControllerPolicy:
    """The controller in the folder `path`, ready to decide.

    Args:
        path: a folder that `save_controller` wrote.
        setting: where it is to decide; its feature schema must be the controller's. None checks only that the
            folder is whole.

    Raises:
        InputError: a file is missing, damaged or not readable.
        SchemaMismatch: made for another format, other actions, other features or another setting.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    if setting is not None:
        check_setting(folder, manifest, setting)
    file = folder / WEIGHTS_FILE
    content = read_bytes(file)
    found = hashlib.sha256(content).hexdigest()
    if found != manifest.weights_sha256:
        raise InputError(
            f"SHA-256 is {found[:16]}…",
            file=file,
            expected=f"{manifest.weights_sha256[:16]}… as the manifest says",
            remedy="The file was changed or cut short; copy the folder again or train again",
        )
    try:
        weights = MLPWeights.from_tensors(load_tensors(content))
    except (SafetensorError, ValueError, KeyError) as problem:  # KeyError: a dtype that numpy does not have
        raise InputError(
            f"holds the dtype {problem}" if isinstance(problem, KeyError) else str(problem),
            file=file,
            expected="the finite float32 arrays w1 (d, h), b1 (h), w2 (h, 7), b2 (7)",
            remedy=RETRAIN,
        ) from problem
    if weights.n_features != len(manifest.feature_names):
        raise SchemaMismatch(
            f"{file}: the network reads {weights.n_features} features, "
            f"the manifest names {len(manifest.feature_names)}. {RETRAIN}"
        )
    return ControllerPolicy(weights, manifest.decision, manifest.name)


def _unwritable(target: Path, problem: OSError) -> InputError:
    return InputError(
        f"a controller cannot be saved here ({problem.strerror or problem})",
        file=target,
        expected="a folder that can be written, on a disk with room",
        remedy=_REMEDIES.get(problem.errno or 0, _ELSEWHERE),
    )
