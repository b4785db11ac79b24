"""`python -m harness_mdp.verify`: fold every stored episode again and report what does not replay."""

from __future__ import annotations

from experiments.config import VerifyConfig
from experiments.hydra_app import run_command

__all__ = ["main"]


def _verify(config: VerifyConfig) -> int:
    from buffers import ReplayBuffer
    from buffers.verify import verify
    from experiments.printing import print_verification
    from experiments.replay import behaviour_policies
    from harness_mdp.scoring.maturity import MaturityConfig, score_episode
    from harness_mdp.settings import open_setting

    presets = (MaturityConfig.paper(), MaturityConfig.strict())
    buffer = ReplayBuffer(config.buffer)
    for name in config.settings:
        open_setting(name)
    report = verify(
        buffer,
        open_setting,
        policy_for=behaviour_policies(buffer),
        rescore=lambda episode, setting: score_episode(episode, setting, presets),
    )
    print_verification(config, report)
    return 0 if report.ok else 1


def main() -> None:
    """Run the command."""
    run_command("verify", _verify)


if __name__ == "__main__":
    main()
