"""The setting `dbbench`: AgentBench DB-Bench, its upstream files or generated tables, scored natively."""

from harness_mdp.settings.dbbench.setting import DBBench

__all__ = ["DBBench"]
