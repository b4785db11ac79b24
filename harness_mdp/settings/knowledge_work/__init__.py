"""The setting `knowledge_work`: briefs that decide by a rule and by figures from tables."""

from harness_mdp.settings.knowledge_work.setting import KnowledgeWork

__all__ = ["KnowledgeWork"]
