"""The words and the environment of every git that cockpit starts, and the few questions of this floor.

What git can be told to run is switched off here for all of them. Everything above ``cockpit.core`` starts
git with :func:`cockpit.access.run_program.run_git`. See ``docs/reference/security.md``.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from cockpit.core.project.own_programs import find_program, safe_path

_GIT_KEPT = frozenset(
    {
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_SYSTEM",
        "GIT_CONFIG_NOSYSTEM",
    }
)
_GIT_SET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": ":",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PROTOCOL_FROM_USER": "0",
    "LC_ALL": "C.UTF-8",
    "LANGUAGE": "",
    "PAGER": "cat",
}
NO_HOOKS = "core.hooksPath=/dev/null"
PINNED_SETTINGS = (
    "core.quotePath=false",
    "core.fsmonitor=false",
    "core.commitGraph=true",
    "color.ui=false",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "diff.relative=false",
    "diff.renames=true",
    "diff.renameLimit=1000",
    "diff.algorithm=myers",
    "diff.indentHeuristic=true",
    "diff.context=3",
    "diff.interHunkContext=0",
    "diff.suppressBlankEmpty=false",
    "diff.submodule=short",
    "diff.ignoreSubmodules=all",
    "diff.wsErrorHighlight=none",
    "grep.patternType=default",
    "grep.fullName=false",
    "grep.column=false",
    "log.showSignature=false",
    "log.mailmap=false",
    "log.decorate=false",
    "log.follow=false",
    "protocol.ext.allow=never",
    NO_HOOKS,
    "core.editor=:",
    "core.pager=cat",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
    "status.submoduleSummary=false",
    "maintenance.auto=false",
    "gc.auto=0",
    "advice.detachedHead=false",
)
_PINNED_GIT = (
    "--no-pager",
    *(word for setting in PINNED_SETTINGS for word in ("-c", setting)),
)
_NO_DRIVERS = ("--no-ext-diff", "--no-textconv")
_SAFE_OPTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("diff", "diff-files", "diff-index", "diff-tree", "log", "show"), _NO_DRIVERS),
    "blame": ("--no-textconv",),
    "grep": ("--no-textconv",),
}
"""Options by subcommand."""
_COMPARES = frozenset(["diff", "diff-files", "diff-index", "diff-tree", "log", "show", "status"])
"""Subcommands with ``--ignore-submodules``. ``.gitmodules`` overrides the setting, but not the option."""
_READS_TREE = frozenset(
    ["status", "diff", "diff-files", "diff-index", "grep", "blame", "check-attr", "check-ignore"]
)
_TREE_OPTIONS = {
    "ls-files": frozenset(
        ["-o", "--others", "-m", "--modified", "-d", "--deleted", "-k", "--killed"]
    ),
    "describe": frozenset(["--dirty", "--broken"]),
}
_COMMITS = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})(?:\.\.\.?(?:[0-9a-f]{40}|[0-9a-f]{64}))?")


def git_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return git's environment: no prompts, one language, literal pathspecs, and none of the ``GIT_*``
    variables that a hook leaves behind (its ``GIT_DIR`` would aim commands at another repository).

    The names and configuration files that the user sets through ``GIT_*`` are kept.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _GIT_KEPT
    }
    return {**inherited, "PATH": safe_path(), **_GIT_SET, **(extra or {})}


def git_argv(*args: str) -> tuple[str, ...]:
    """Return git by its absolute path and ARGS, with the settings pinned that make output differ or run
    programs. Where git is not found, its bare name stays, which ``git_environment`` finds nowhere either.

    :func:`cockpit.access.run_program.prepare_git` also switches off the programs of a repository's own
    settings.
    """
    return (find_program("git") or "git", *_PINNED_GIT, *_safe_options(args))


def _safe_options(args: Sequence[str]) -> tuple[str, ...]:
    """Add the options that keep a subcommand from running drivers and looking into submodules."""
    at = _find_subcommand(args)
    if at == len(args):
        return tuple(args)
    options = _SAFE_OPTIONS.get(args[at], ())
    if args[at] in _COMPARES:
        # A commit names a submodule's commit; whoever compares commits wants to see that.
        options += (f"--ignore-submodules={'all' if reads_tree(args) else 'dirty'}",)
    return (*args[: at + 1], *options, *args[at + 1 :])


def _find_subcommand(args: Sequence[str]) -> int:
    at = 0
    while at < len(args) and args[at].startswith("-"):
        at += 2 if args[at] in ("-c", "-C") else 1
    return at


def reads_tree(args: Sequence[str]) -> bool:
    """Whether ``git ARGS`` reads the files of a checkout, and changes nothing."""
    at = _find_subcommand(args)
    if at == len(args):
        return False
    name, words = args[at], list(args[at + 1 :])
    if "--" in words:
        words = words[: words.index("--")]
    if name in _TREE_OPTIONS:
        return not _TREE_OPTIONS[name].isdisjoint(words)
    if name == "hash-object":
        return "--stdin" not in words and "-w" not in words
    if name not in _READS_TREE:
        return False
    if name in ("diff", "diff-index") and not {"--cached", "--staged"}.isdisjoint(words):
        return False
    commits = [word for word in words if _COMMITS.fullmatch(word)]
    compares_commits = len(commits) == 2 or any("." in word for word in commits)
    return name != "diff" or not compares_commits


def ask_git(cwd: Path, *words: str) -> bytes | None:
    """Return the output of a git that reads only the index, objects and its own folders; None if it failed.

    The programs of a repository's settings are not switched off as in ``run_git``: those that such a
    command could run are pinned.
    """
    ended = _ask(cwd, *words)
    return ended.stdout if ended is not None and ended.returncode == 0 else None


def why_git_refuses(cwd: Path) -> str:
    """Return git's own words on why it works in no checkout at ``cwd``; '' where it works, or is missing."""
    ended = _ask(cwd, "rev-parse", "--show-toplevel")
    if ended is None or ended.returncode == 0:
        return ""
    return ended.stderr.decode("utf-8", "replace").strip().removeprefix("fatal: ")


def _ask(cwd: Path, *words: str) -> subprocess.CompletedProcess[bytes] | None:
    try:
        return subprocess.run(
            git_argv(*words), cwd=cwd, env=git_environment(), capture_output=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
