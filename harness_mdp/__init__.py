"""The Harness MDP: formalism, episode runner, executors, settings, scoring, and the commands."""
