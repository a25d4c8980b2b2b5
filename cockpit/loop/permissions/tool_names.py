"""The names of agents' own tools, by what they do, and an argv as shell text.

A hook call loads this, so it imports nothing that takes time. See ``docs/reference/hooks.md``.
"""

from __future__ import annotations

import os

SHELL_PROGRAMS = frozenset(("sh", "bash", "zsh", "dash"))
SHELLS = frozenset(("Bash", "shell", "local_shell", "exec_command", "unified_exec"))
"""Tools that run a command."""
READERS = {"Read": "file_path", "NotebookRead": "notebook_path", "LS": "path"}
"""Tools that read one file or folder, with the argument that names it."""
SEARCHERS = frozenset(("Glob", "Grep"))
WRITERS = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path"}
"""Tools that write one file, with the argument that names it."""

OF_AGENTS = frozenset((".claude", ".codex", ".mcp.json", ".cockpit"))
"""What tells agents what they may do: a policy over them does not reach there."""


def join_words(words: list[str]) -> str:
    """Return an argv as shell text; the script itself of ``bash -c SCRIPT``."""
    shell = os.path.basename(words[0]) in SHELL_PROGRAMS if words else False
    if shell and len(words) == 3 and words[1] in ("-c", "-lc"):
        return words[2]
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    plain = word and all(letter.isalnum() or letter in "_@%+=:,./-" for letter in word)
    return word if plain else "'" + word.replace("'", "'\"'\"'") + "'"
