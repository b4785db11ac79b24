"""Executors: the frozen model behind chat completions; `openai`, `simulated`, and the completion cache."""
