"""The settings of ``[work]`` that bring into a worktree what git ignores."""

from __future__ import annotations

from cockpit.config.setting import COMMANDS, NAMES, VARIABLES, Key

WORKTREE_KEYS = (
    Key(
        "work",
        "setup",
        field="work.setup",
        type=COMMANDS,
        allowed="a command, or a list of commands",
        default=(),
        env="",
        purpose="Commands that install what a fresh worktree lacks; they have the network",
        project="fills",
    ),
    Key(
        "work",
        "copy",
        field="work.copy",
        type=NAMES,
        allowed="a list of paths in the checkout",
        default=(),
        env="",
        purpose="Files that git ignores and every worktree gets a copy of",
        project="fills",
    ),
    Key(
        "work",
        "link",
        field="work.link",
        type=NAMES,
        allowed="a list of paths in the checkout",
        default=(),
        env="",
        purpose="Files that git ignores and every worktree gets a link to; the sandbox shows them read-only",
        project="fills",
    ),
    Key(
        "work",
        "env",
        field="work.env",
        type=VARIABLES,
        allowed="a table of variables",
        default=None,
        env="",
        purpose="Variables of each worktree; `{port}` is a free port of its own, `{task}` its task",
        project="fills",
    ),
)
