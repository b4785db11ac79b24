"""The setting `tau_retail`: tau-bench retail, its upstream files or a generated shop, scored natively."""

from harness_mdp.settings.tau_retail.setting import TauRetail

__all__ = ["TauRetail"]
