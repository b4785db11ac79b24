"""Policies from their configuration or their name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from controllers.config import DecisionRule
from controllers.exploration import PORTFOLIO_WEIGHTS, Epsilon, Explore, Portfolio, Uniform
from controllers.policy import ControllerPolicy
from controllers.saved import load_controller
from experiments.config import (
    ControllerPolicyConfig,
    EpsilonPolicyConfig,
    PolicyConfig,
    PortfolioPolicyConfig,
    ScriptPolicyConfig,
)
from experiments.members import member
from harness_mdp.errors import ConfigError
from harness_mdp.mdp import Policy
from harness_mdp.settings.protocol import Setting
from harness_mdp.settings.scripts import script_policy

__all__ = ["explored", "is_controller", "make_policy", "named_policy"]


def is_controller(name: str, setting: Setting) -> bool:
    """Whether `name` means a folder rather than a script or `random`."""
    return name != "random" and name not in setting.scripts


def named_policy(name: str, setting: Setting) -> Policy:
    """A script of `setting`, `random`, or the saved controller in folder `name`.

    Raises:
        ConfigError: neither a script nor a folder.
        InputError, SchemaMismatch: a damaged controller, or one made for other features.
    """
    if not is_controller(name, setting):
        return Uniform() if name == "random" else script_policy(setting, name)
    if not _is_folder(name):
        raise ConfigError(
            f"policy {name!r} is neither a script of {setting.name} ({', '.join(setting.scripts)}, random) "
            "nor the folder of a saved controller"
        )
    return load_controller(Path(name), setting)


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except (OSError, ValueError):  # no permission to look, or no path at all
        return False


def make_policy(config: PolicyConfig, setting: Setting) -> Policy:
    """The policy that `config` describes, for `setting`.

    Raises:
        ConfigError: an unknown name, or weights and ε that cannot be.
    """
    match config:
        case ScriptPolicyConfig():
            return named_policy(config.name, setting)
        case EpsilonPolicyConfig() | PortfolioPolicyConfig():
            return explored(config, lambda name: named_policy(name, setting))
        case ControllerPolicyConfig():
            controller = load_controller(Path(config.path), setting)
            if config.decision is None:
                return controller
            if not isinstance(controller, ControllerPolicy):
                raise ConfigError(
                    f"policy.decision={config.decision}: {config.path} is a {controller.kind!r} controller, which "
                    "always decides greedily. Leave policy.decision out"
                )
            return ControllerPolicy(
                controller.weights, member(DecisionRule, "policy.decision", config.decision), controller.name
            )
        case _:
            raise ConfigError(f"unknown kind of policy {config.kind!r}")


def explored(config: EpsilonPolicyConfig | PortfolioPolicyConfig, policy: Callable[[str], Policy]) -> Policy:
    """The mixture that `config` describes, of what `policy` finds for the names in it.

    Raises:
        ConfigError: weights and shares that cannot be; and what `policy` raises.
    """
    explore = member(Explore, "policy.explore", config.explore)
    if isinstance(config, EpsilonPolicyConfig):
        return Epsilon(policy(config.inner), config.epsilon, explore, recheck=config.recheck)
    members = [(policy(name), weight) for name, weight in (config.weights or PORTFOLIO_WEIGHTS).items()]
    return Portfolio(members, config.epsilon, explore, recheck=config.recheck)
