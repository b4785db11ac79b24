"""How every command is run: Hydra for the configuration, one place for exit codes and error texts.

Exit codes: 0 done; 1 failed; 2 the input or the configuration is at fault (plain Hydra would give 1); 130 stopped
by the user. No folder is made and no log is configured: what a command writes is what it was asked to write.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from experiments.command_words import group_options, hydra_value
from harness_mdp.errors import ConfigError, HarnessError

if TYPE_CHECKING:
    from hydra.errors import MissingConfigException

__all__ = ["run_command"]

Config = TypeVar("Config")


OPEN_KEYS = {"executor.prices": "openai", "executor.extra": "openai", "policy.weights": "portfolio"}
"""Mappings with keys of the user's own, and the option of their group that has them. Hydra wants `++`
before them, which nobody should have to know."""
_EXPLORATION = ("policy.epsilon", "policy.explore", "policy.recheck")
"""Keys that a controller by itself does not have."""


def run_command(
    config_name: str,
    body: Callable[[Config], int],
    *,
    refused: Callable[[Any, HarnessError], int] | None = None,
    after: Callable[[int], int] | None = None,
) -> None:
    """Compose `experiments/conf/<config_name>.yaml` with the command line, run `body`, and exit.

    Args:
        config_name: also the name of the command.
        body: gets the configuration as its plain dataclass and returns an exit code.
        refused: gets Hydra's configuration and the error of one that `body` cannot be given, or refuses, instead of
            the message that is printed otherwise, and returns an exit code. Launchers pickle it and `body`.
        after: gets the exit code when everything has run, and returns the one to exit with.
    """
    if {"--help", "-h"} & set(sys.argv[1:]):
        from experiments.command_help import print_help

        print_help(config_name, sys.argv[1:])
        sys.exit(0)
    words = _with_controller(sys.argv[1:]) if _chooses_policy(config_name) else sys.argv[1:]
    sys.argv[1:] = [f"++{word}" if _is_open(word) else word for word in words]
    with tempfile.TemporaryDirectory(prefix="harness-mdp-") as sweep:
        os.environ["HARNESS_MDP_SWEEP"] = sweep  # where Hydra keeps its notes on a multirun; nobody reads them
        code = _run(config_name, body, refused)
    sys.exit(code if after is None else after(code))


def _is_open(word: str) -> bool:
    key = word.partition("=")[0]
    return any(key == name or key.startswith(f"{name}.") for name in OPEN_KEYS)


def _chooses_policy(config_name: str) -> bool:
    return "\n  - policy:" in resources.files("experiments.conf").joinpath(f"{config_name}.yaml").read_text()


def _with_controller(words: list[str]) -> list[str]:
    """`policy=DIR` for the folder of a saved controller, with exploration where `policy.epsilon` or its like is given.

    A group's options are files of ours; that a folder has to be wrapped in one of them nobody should have to know.
    """
    given = {word.partition("=")[0] for word in words}
    explores = not given.isdisjoint(_EXPLORATION)
    kind, key = ("epsilon", "inner") if explores else ("controller", "path")
    found: list[str] = []
    for word in words:
        name, _, value = word.partition("=")
        if name == "policy" and value not in group_options("policy") and (folder := _folder(value)):
            found += [f"policy={kind}", f"policy.{key}={hydra_value(folder)}"]
            found += _unasked_epsilon(given) if explores else []
        else:
            found.append(word)
    return found


def _unasked_epsilon(given: set[str]) -> list[str]:
    """ε = 0 around a controller for which it was not given: who asks for rechecks has not asked for random actions."""
    if "policy.epsilon" in given:
        return []
    if "policy.explore" in given:
        print("policy.explore says among what, and policy.epsilon how often; give both", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    return ["policy.epsilon=0"]


def policy_among_policies(words: Sequence[str]) -> list[str]:
    """`policy=NAME` as `policies=[NAME]`: `policy` is a group of configurations elsewhere, and here the name of one.

    Where `policies` is given as well the command ends with exit code 2, since one of the two would be dropped.
    """
    short = [word.removeprefix("policy=") for word in words if word.startswith("policy=")]
    others = [word for word in words if not word.startswith("policy=")]
    if not short:
        return others
    if len(short) > 1 or any(word.startswith("policies=") for word in others):
        print("policy= names one policy; for several say policies=[NAME,...] alone", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    return [*others, f"policies=[{short[0]}]"]


def _folder(value: str) -> str:
    """`value` without quotes of Hydra's, if it is a folder."""
    inner = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
    try:
        return inner if inner and Path(inner).is_dir() else ""
    except (OSError, ValueError):  # no permission to look, or no path at all
        return ""


def _run(
    config_name: str, body: Callable[[Config], int], refused: Callable[[Any, HarnessError], int] | None = None
) -> int:
    import hydra
    from hydra.errors import HydraException, MissingConfigException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from experiments.register import register_configs

    register_configs()
    # Hydra prints its own traceback and exits with 1 unless it is told to let exceptions through.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    codes: list[int] = []

    def job(config: Any) -> None:  # Hydra hands over an untyped DictConfig
        try:
            missing = sorted(OmegaConf.missing_keys(config))
            if missing:
                raise ConfigError(f"missing: {', '.join(missing)}. Give each as KEY=VALUE")
            _expect_open_keys_known(config)
            codes.append(body(cast("Config", OmegaConf.to_object(config))))
        except HarnessError as error:  # caught here, because Hydra announces whatever leaves a job
            code = refused(config, error) if refused else _fail(config_name, str(error), error.exit_code)
            codes.append(code)
        except BrokenPipeError:
            codes.append(1)
        except OSError as error:
            codes.append(_fail(config_name, f"{error}. What is finished is kept; mend it and run again", 1))

    main = hydra.main(version_base="1.3", config_path="pkg://experiments.conf", config_name=config_name)(job)
    try:
        main()
    except MissingConfigException as error:
        return _fail(config_name, f"{_unknown_option(error)}. {LOOK_UP}", 2)
    except (HydraException, OmegaConfBaseException) as error:
        return _fail(config_name, f"{_config_message(error)}. {LOOK_UP}", 2)
    except KeyboardInterrupt:
        return _fail(config_name, "stopped; what was committed is kept, the same command goes on from there", 130)
    return max(codes, default=0)


def _expect_open_keys_known(config: Any) -> None:
    """Refuse an open key that `++` has put into a group whose chosen option has none, lest it be ignored."""
    from omegaconf import OmegaConf

    for key, option in OPEN_KEYS.items():
        group, _, name = key.partition(".")
        chosen = config.get(group)
        kind: Any = OmegaConf.get_type(chosen) if OmegaConf.is_dict(chosen) else None
        if is_dataclass(kind) and name in chosen and name not in {item.name for item in fields(kind)}:
            raise ConfigError(
                f"{key} changes nothing, the {group} being of kind {chosen.kind}: it is a key of {group}={option}. "
                f"Leave it out, or write {group}={option}"
            )


LOOK_UP = "--help lists all keys, --cfg job shows the configuration"


def _fail(command: str, message: str, code: int) -> int:
    sys.stderr.write(f"harness-mdp {command}: {message}\n")
    return code


def _unknown_option(error: MissingConfigException) -> str:
    """`unknown setting 'nope'; expected one of coding, dbbench`: the files of the group, without the schemas."""
    group, _, option = (error.missing_cfg_file or "").partition("/")  # an option may be a path
    if not group or not (options := group_options(group)):
        return _config_message(error)
    or_else = ", or the folder of a saved controller" if group == "policy" else ""
    return f"unknown {group} {option!r}; expected one of {', '.join(options)}{or_else}"


def _config_message(error: Exception) -> str:
    """Hydra's text in one line, with its cause where that says more, and what to do."""
    text = str(error).strip()
    cause = error.__cause__
    if cause is not None and str(cause).strip() and str(cause).strip() not in text:
        text = f"{text}: {str(cause).strip()}"
    if unknown := re.search(r"Key '(\w+)' (?:is )?not in (?:struct|'\w+')", text):
        return f"unknown key {unknown[1]!r} in {_overridden(text)}"
    if "Lexer" in text or "mismatched input" in text or "extraneous input" in text:
        first = text.splitlines()[0]
        return f"{first}; quote a value with blanks or special characters twice: \"buffer='runs/my buffer'\""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    noise = ("object_type=", "reference_type=", "full_key:", "To append", "See https:")
    wanted = [line.rstrip(".") for line in lines if not line.startswith(noise)]
    return "; ".join(wanted or lines)


def _overridden(text: str) -> str:
    """The key as it was typed, from Hydra's `Could not override 'a.b'`."""
    typed = re.search(r"Could not override '([^']+)'", text)
    return f"{typed[1]!r}" if typed else "the configuration"
