"""Saved controllers: a folder with `weights.safetensors` and `manifest.json` (DESIGN section 8).

Loading reads JSON and raw arrays, never pickles, and refuses by name whatever does not fit.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from controllers.manifest import (
    MANIFEST_FILE,
    RETRAIN,
    Manifest,
    check_setting,
    manifest_json,
    read_bytes,
    read_manifest,
)
from controllers.network import MLPWeights
from controllers.policy import ControllerPolicy
from harness_mdp.errors import InputError, SchemaMismatch
from harness_mdp.settings.protocol import Setting

__all__ = ["Manifest", "load_controller", "read_manifest", "save_controller"]

WEIGHTS_FILE = "weights.safetensors"


def save_controller(path: Path | str, weights: MLPWeights, manifest: Manifest) -> Manifest:
    """Writes the folder `path` and returns the manifest as written.

    The folder is made whole beside its place and then renamed into it: at any moment `path` is the old
    controller, the new one or nothing, never a mixture. A controller that is there is replaced, with
    everything in its folder.

    Raises:
        SchemaMismatch: weights and manifest do not fit together.
        InputError: `path` is there and is no controller, so it is not replaced.
    """
    target = Path(path).absolute()
    if target.exists() and not _replaceable(target):
        raise InputError(
            "is there and is no saved controller",
            file=target,
            expected="a new or empty folder, or one with a manifest.json to replace",
            remedy="Choose another folder, or remove this one",
        )
    if weights.n_features != len(manifest.feature_names):
        raise SchemaMismatch(
            f"the network reads {weights.n_features} features, the manifest names {len(manifest.feature_names)}"
        )
    content = save_tensors(weights.tensors())
    written = replace(manifest, weights_sha256=hashlib.sha256(content).hexdigest())
    target.parent.mkdir(parents=True, exist_ok=True)
    staged = Path(mkdtemp(prefix=f".{target.name}.new-", dir=target.parent))
    try:
        staged.chmod(0o755)
        _write(staged / WEIGHTS_FILE, content)
        _write(staged / MANIFEST_FILE, manifest_json(written).encode())
        _put(staged, target)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    return written


def load_controller(path: Path | str, setting: Setting | None = None) -> ControllerPolicy:
    """The controller in the folder `path`, ready to decide.

    Args:
        path: a folder that `save_controller` wrote.
        setting: where it is to decide; its feature schema must be the controller's. None checks only that the
            folder is whole.

    Raises:
        InputError: a file is missing or damaged.
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
    except (SafetensorError, ValueError) as problem:
        raise InputError(
            str(problem),
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


def _replaceable(target: Path) -> bool:
    """An empty folder, or one that was saved here before."""
    return target.is_dir() and ((target / MANIFEST_FILE).is_file() or not any(target.iterdir()))


def _write(file: Path, content: bytes) -> None:
    with file.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())


def _put(staged: Path, target: Path) -> None:
    """Renames `staged` to `target`; what was there is moved aside first, and back if that fails."""
    if not target.exists():
        staged.rename(target)
        return
    aside = Path(mkdtemp(prefix=f".{target.name}.old-", dir=target.parent))
    target.rename(aside)  # onto an empty folder, which rename replaces
    try:
        staged.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    shutil.rmtree(aside)
