"""The setting `long_memory`: answer from many dated chat sessions in which facts change over time.

Modules: `words` (vocabulary), `sessions` (the log of a task and its text), `reading` (statements and spans in texts),
`search` (TF-IDF), `queries` (what is asked), `diary`, `templates` and `tasks` (generator), `draft`, `checking`,
`scoring` (sealed rubric), `setting`.
"""

from harness_mdp.settings.long_memory.setting import LongMemory

__all__ = ["LongMemory"]
