"""The dataclasses of `experiments.config` as Hydra schemas. Only the commands import this."""

from __future__ import annotations

from experiments import config, method_config
from experiments.attainable_config import AttainableConfig
from experiments.convergence_config import ConvergenceConfig
from experiments.expert_search_config import ExpertSearchConfig
from experiments.explain_config import ExplainConfig
from experiments.export_config import ExportConfig
from experiments.learners_table_config import LearnersTableConfig
from experiments.maturity_keys import MaturityPresetConfig
from experiments.ope_config import OpeConfig, OpeProofConfig
from experiments.ope_truth_config import OpeTruthConfig
from experiments.report_config import ReportConfig
from experiments.returns_config import ReturnsConfig
from experiments.statistics_proof_config import StatisticsProofConfig
from experiments.study_config import CellConfig
from experiments.support_config import SupportConfig

__all__ = ["SCHEMAS", "register_configs"]

SCHEMAS: dict[str, type] = {
    "collect_schema": config.CollectConfig,
    "train_schema": config.TrainConfig,
    "evaluate_schema": config.EvaluateConfig,
    "score_schema": config.ScoreConfig,
    "verify_schema": config.VerifyConfig,
    "export_schema": ExportConfig,
    "report_schema": ReportConfig,
    "ope_schema": OpeConfig,
    "support_schema": SupportConfig,
    "expert_search_schema": ExpertSearchConfig,
    "ope_proof_schema": OpeProofConfig,
    "ope_truth_schema": OpeTruthConfig,
    "explain_schema": ExplainConfig,
    "study_schema": CellConfig,
    "demo_schema": config.DemoConfig,
    "paper_table_schema": config.PaperTableConfig,
    "attainable_schema": AttainableConfig,
    "learners_table_schema": LearnersTableConfig,
    "convergence_schema": ConvergenceConfig,
    "statistics_proof_schema": StatisticsProofConfig,
    "setting/schema": config.SettingConfig,
    "executor/simulated_schema": config.SimulatedConfig,
    "executor/openai_schema": config.OpenAIConfig,
    "policy/script_schema": config.ScriptPolicyConfig,
    "policy/epsilon_schema": config.EpsilonPolicyConfig,
    "policy/portfolio_schema": config.PortfolioPolicyConfig,
    "policy/controller_schema": config.ControllerPolicyConfig,
    "method/schema": method_config.MethodConfig,
    "method/plan_schema": method_config.PlanMethodConfig,
    "method/linear_q_schema": method_config.LinearQMethodConfig,
    "method/q_schema": method_config.QMethodConfig,
    "method/d3rlpy_schema": method_config.D3MethodConfig,
    "returns/schema": ReturnsConfig,
    "maturity/schema": MaturityPresetConfig,
}
"""Name, or group/name, by which the YAML files in `conf/` extend them."""


def register_configs() -> None:
    """Make every schema known to Hydra."""
    from hydra.core.config_store import ConfigStore

    store = ConfigStore.instance()
    for name, node in SCHEMAS.items():
        group, _, short = name.rpartition("/")
        store.store(group=group or None, name=short, node=node)
