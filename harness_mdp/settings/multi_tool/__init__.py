"""The setting `multi_tool`: answer with figures that tools give, chosen by the executor.

Modules: `calculator`, `units`, `dates`, `tables` (the tools), `calls` (a reply becomes a call, a call a result),
`draft` (the JSON answer), `chains` and `templates` (how tasks are made up), `tasks` (generator), `setting`.
"""

from harness_mdp.settings.multi_tool.setting import MultiTool

__all__ = ["MultiTool"]
