"""Saved controllers: a folder with `weights.safetensors` and `manifest.json` (DESIGN section 8).

Loading reads JSON and raw arrays, never pickles, and refuses by name whatever does not fit.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from controllers.kinds import Controller, make_controller
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
from controllers.policy import ControllerPolicy
from controllers.replacing import replace_folder
from harness_mdp.errors import InputError, SchemaMismatch
from harness_mdp.settings.protocol import Setting

__all__ = [
    "Manifest",
    "check_target",
    "learner_key",
    "load_controller",
    "load_folds",
    "read_manifest",
    "save_controller",
]

WEIGHTS_FILE = "weights.safetensors"

_FOLD = "fold"
"""Arrays of the k-th task-fold controller are named `fold<k>/<name>`."""

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


def save_controller(
    path: Path | str, controller: Controller, manifest: Manifest, folds: Sequence[Controller] = ()
) -> Manifest:
    """Writes the folder `path` and returns the manifest as written.

    The folder is made whole beside its place and then renamed into it: at any moment `path` is the old
    controller, the new one or nothing, never a mixture. A saved controller that is there is replaced; anything
    else that is there is left alone and refused (see `check_target`). A link is followed.

    Args:
        path: folder to write.
        controller: what decides.
        manifest: its `kind` is filled in; `folds` says what each of `folds` did not learn from.
        folds: task-fold controllers of the same kind, for off-policy evaluation.

    Raises:
        SchemaMismatch: controller and manifest do not fit together.
        InputError: `path` is there and is no controller, it cannot be written, or a field of the manifest could not
            be read again. What was at `path` before is still there, unless the message says that the new one is in
            its place.
    """
    target = check_target(path)
    _expect_width(controller, manifest, "the controller")
    if len(folds) != len(manifest.folds) or any(fold.kind != controller.kind for fold in folds):
        raise SchemaMismatch(
            f"{len(folds)} task-fold controllers of kinds {sorted({fold.kind for fold in folds})}; the manifest names "
            f"{len(manifest.folds)} folds of a {controller.kind!r} controller"
        )
    arrays = dict(controller.tensors())
    for index, fold in enumerate(folds):
        arrays.update({f"{_FOLD}{index}/{name}": array for name, array in fold.tensors().items()})
    content = save_tensors({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    written = replace(manifest, kind=controller.kind, weights_sha256=hashlib.sha256(content).hexdigest())
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


def load_controller(path: Path | str, setting: Setting | None = None) -> Controller:
    """The controller in the folder `path`, ready to decide.

    Args:
        path: a folder that `save_controller` wrote.
        setting: where it is to decide; its feature schema must be the controller's. None checks only that the
            folder is whole.

    Raises:
        InputError: a file is missing, damaged or not readable.
        SchemaMismatch: made for another format, other actions, other features or another setting.
    """
    manifest, arrays = _read(Path(path), setting)
    return _controller(Path(path), manifest, arrays, "")


def load_folds(path: Path | str, setting: Setting | None = None) -> tuple[tuple[Controller, frozenset[str]], ...]:
    """The task-fold controllers in the folder `path`, each with the hashes of the tasks it did not learn from.

    Raises:
        InputError, SchemaMismatch: as `load_controller`.
    """
    manifest, arrays = _read(Path(path), setting)
    return tuple(
        (_controller(Path(path), manifest, arrays, f"{_FOLD}{index}/"), frozenset(held_out))
        for index, held_out in enumerate(manifest.folds)
    )


def _read(folder: Path, setting: Setting | None) -> tuple[Manifest, dict[str, npt.NDArray[np.generic]]]:
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
        return manifest, dict(load_tensors(content))
    except (SafetensorError, KeyError) as problem:  # KeyError: a dtype that numpy does not have
        raise InputError(
            f"holds the dtype {problem}" if isinstance(problem, KeyError) else str(problem),
            file=file,
            expected="the arrays of a controller",
            remedy=RETRAIN,
        ) from problem


def _controller(
    folder: Path, manifest: Manifest, arrays: dict[str, npt.NDArray[np.generic]], prefix: str
) -> Controller:
    """The controller whose arrays begin with `prefix`; the empty one is the controller itself."""
    file = folder / WEIGHTS_FILE
    own = {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix) and (prefix or not name.startswith(_FOLD))
    }
    try:
        controller = make_controller(manifest.kind, own, manifest.decision, manifest.name)
    except ValueError as problem:
        raise InputError(
            str(problem), file=file, expected=f"the finite arrays of a {manifest.kind!r} controller", remedy=RETRAIN
        ) from problem
    _expect_width(controller, manifest, f"{file}: the controller")
    return controller


def _expect_width(controller: Controller, manifest: Manifest, what: str) -> None:
    """A network reads all features; trees may never split on the last ones."""
    named, read = len(manifest.feature_names), controller.n_features
    if read > named or (isinstance(controller, ControllerPolicy) and read != named):
        raise SchemaMismatch(f"{what} reads {read} features, the manifest names {named}. {RETRAIN}")


def _unwritable(target: Path, problem: OSError) -> InputError:
    return InputError(
        f"a controller cannot be saved here ({problem.strerror or problem})",
        file=target,
        expected="a folder that can be written, on a disk with room",
        remedy=_REMEDIES.get(problem.errno or 0, _ELSEWHERE),
    )
