"""The setting `research`: answer a question from a small corpus and cite the documents that show it.

Modules: `world` and `tasks` (generator), `search` (TF-IDF, names), `draft` (answer and sources from any reply),
`scoring` (sealed rubric), `setting`.
"""

from harness_mdp.settings.research.setting import Research

__all__ = ["Research"]
