"""The settings of ``[work]`` for long runs: what a worktree lacks, and who continues at a limit."""

from __future__ import annotations

from cockpit.config.setting import COMMANDS, NAMES, VARIABLES, setting

LONG_RUN_KEYS = (
    setting(
        "work",
        "setup",
        type=COMMANDS,
        allowed="a command, or a list of commands",
        default=(),
        env="",
        purpose="Commands that install what a fresh worktree lacks; they have the network",
        project="fills",
    ),
    setting(
        "work",
        "copy",
        type=NAMES,
        allowed="a list of paths in the checkout",
        default=(),
        env="",
        purpose="Files that git ignores and every worktree gets a copy of",
        project="fills",
    ),
    setting(
        "work",
        "link",
        type=NAMES,
        allowed="a list of paths in the checkout",
        default=(),
        env="",
        purpose="Files that git ignores and every worktree gets a link to; the sandbox shows them read-only",
        project="fills",
    ),
    setting(
        "work",
        "env",
        type=VARIABLES,
        allowed="a table of variables",
        env="",
        purpose="Variables of each worktree; `{port}` is a free port of its own, `{task}` its task",
        project="fills",
    ),
    setting(
        "work",
        "fallback_runners",
        type=NAMES,
        allowed="a list of external agents",
        default=(),
        env="",
        purpose="Agents that continue a chain, in this order, where a provider takes no more for now",
        project="none",
    ),
)
