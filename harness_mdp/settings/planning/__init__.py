"""The setting `planning`: schedule tasks under stated constraints, as early as possible.

Modules: `instance` and `draft` (problem and schedule), `constraints` (validator), `whatif` (tool), `optimum` (MILP),
`scoring` (sealed rubric), `templates`, `faults` and `tasks` (generator), `statement` (words), `setting`.
"""

from harness_mdp.settings.planning.setting import Planning

__all__ = ["Planning"]
