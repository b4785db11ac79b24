"""Hydra configuration of the commands: one file per command, one folder per group."""
