"""How every command is run: Hydra for the configuration, one place for exit codes and error texts.

Exit codes: 0 done; 1 failed; 2 the input or the configuration is at fault (plain Hydra would give 1); 130 stopped
by the user. No folder is made and no log is configured: what a command writes is what it was asked to write.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar, cast

from harness_mdp.errors import ConfigError, HarnessError

if TYPE_CHECKING:
    from hydra.errors import MissingConfigException

__all__ = ["run_command"]

Config = TypeVar("Config")


def run_command(config_name: str, body: Callable[[Config], int]) -> None:
    """Compose `experiments/conf/<config_name>.yaml` with the command line, run `body`, and exit.

    Args:
        config_name: also the name of the command.
        body: gets the configuration as its plain dataclass and returns an exit code.
    """
    sys.exit(_run(config_name, body))


def _run(config_name: str, body: Callable[[Config], int]) -> int:
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
            codes.append(body(cast("Config", OmegaConf.to_object(config))))
        except HarnessError as error:  # caught here, because Hydra announces whatever leaves a job
            codes.append(_fail(config_name, str(error), error.exit_code))

    main = hydra.main(version_base="1.3", config_path="pkg://experiments.conf", config_name=config_name)(job)
    try:
        main()
    except MissingConfigException as error:
        return _fail(config_name, f"{_unknown_option(error)}. {LOOK_UP}", 2)
    except (HydraException, OmegaConfBaseException) as error:
        return _fail(config_name, f"{_config_message(error)}. {LOOK_UP}", 2)
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        return _fail(config_name, "stopped; what is finished is kept, run the same command again to go on", 130)
    return max(codes, default=0)


LOOK_UP = "--help lists all keys, --cfg job shows the configuration"


def _fail(command: str, message: str, code: int) -> int:
    sys.stderr.write(f"harness-mdp {command}: {message}\n")
    return code


def _unknown_option(error: MissingConfigException) -> str:
    """`unknown setting 'nope'; expected one of coding, dbbench`: the files of the group, without the schemas."""
    group, _, option = (error.missing_cfg_file or "").rpartition("/")
    folder = resources.files("experiments.conf").joinpath(group)
    if not group or not folder.is_dir():
        return _config_message(error)
    options = sorted(f.name.removesuffix(".yaml") for f in folder.iterdir() if f.name.endswith(".yaml"))
    return f"unknown {group} {option!r}; expected one of {', '.join(options)}"


def _config_message(error: Exception) -> str:
    """Hydra's text in one line, with its cause where that says more."""
    text = str(error).strip()
    cause = error.__cause__
    if cause is not None and str(cause).strip() and str(cause).strip() not in text:
        text = f"{text}: {str(cause).strip()}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # "To append" is Hydra's advice for configurations without a schema; ours have one.
    noise = ("object_type=", "reference_type=", "full_key:", "To append")
    wanted = [line.rstrip(".") for line in lines if not line.startswith(noise)]
    return "; ".join(wanted or lines).replace("Could not override", "unknown key")
