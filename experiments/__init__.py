"""Collect, train, evaluate as library functions, and their Hydra configuration."""
