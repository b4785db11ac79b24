"""Registers the dataclasses of `experiments.config` as Hydra schemas. Only the commands import this."""

from __future__ import annotations

from hydra.core.config_store import ConfigStore

from experiments import config
from experiments.maturity_keys import MaturityPresetConfig

__all__ = ["register_configs"]


def register_configs() -> None:
    """Make every schema known by group and name; the YAML files in `conf/` extend them."""
    store = ConfigStore.instance()
    store.store(name="collect_schema", node=config.CollectConfig)
    store.store(name="train_schema", node=config.TrainConfig)
    store.store(name="evaluate_schema", node=config.EvaluateConfig)
    store.store(name="verify_schema", node=config.VerifyConfig)
    store.store(name="score_schema", node=config.ScoreConfig)
    store.store(name="study_schema", node=config.StudyConfig)
    store.store(name="demo_schema", node=config.DemoConfig)
    store.store(name="paper_table_schema", node=config.PaperTableConfig)
    store.store(group="setting", name="schema", node=config.SettingConfig)
    store.store(group="executor", name="simulated_schema", node=config.SimulatedConfig)
    store.store(group="executor", name="openai_schema", node=config.OpenAIConfig)
    store.store(group="policy", name="script_schema", node=config.ScriptPolicyConfig)
    store.store(group="policy", name="epsilon_schema", node=config.EpsilonPolicyConfig)
    store.store(group="policy", name="portfolio_schema", node=config.PortfolioPolicyConfig)
    store.store(group="policy", name="controller_schema", node=config.ControllerPolicyConfig)
    store.store(group="method", name="schema", node=config.MethodConfig)
    store.store(group="maturity", name="schema", node=MaturityPresetConfig)
