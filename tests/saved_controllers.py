"""A made-up saved controller, and ways to change it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from controllers.config import AWConfig, DecisionRule
from controllers.network import initial_weights
from controllers.policy import ControllerPolicy
from controllers.saved import Manifest, save_controller
from harness_mdp.features import FeatureSchema

SCHEMA = FeatureSchema("made_up", 3, ("one", "two", "three", "four"))


def manifest(**changes) -> Manifest:
    made = Manifest(
        name="aw",
        method="aw",
        seed=4,
        decision=DecisionRule.SAMPLE,
        feature_schema_id=SCHEMA.id,
        feature_names=SCHEMA.names,
        settings={SCHEMA.setting: SCHEMA.setting_version},
        executors=("simulated:medium",),
        buffer_path="runs/buffer",
        buffer_version=7,
        task_hashes=("3f" * 32, "a0" * 32),
        config=AWConfig().as_json(),
        metrics={"loss": [1.5, 1.25]},
    )
    return replace(made, **changes)


def setting(schema: FeatureSchema = SCHEMA) -> SimpleNamespace:
    """What loading reads of a setting."""
    return SimpleNamespace(name=schema.setting, version=schema.setting_version, schema=schema)


def saved(folder: Path, **changes) -> Path:
    save_controller(folder, ControllerPolicy(initial_weights(len(SCHEMA), 8, seed=1)), manifest(**changes))
    return folder


def edit(folder: Path, **changes) -> None:
    file = folder / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
