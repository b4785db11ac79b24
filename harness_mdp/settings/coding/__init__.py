"""The setting `coding`: Python functions, visible tests as a tool, hidden tests as the rubric."""

from harness_mdp.settings.coding.setting import Coding

__all__ = ["Coding"]
