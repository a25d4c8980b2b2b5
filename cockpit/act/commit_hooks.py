"""The hooks of a repository that run with a commit or a push, and the files that decide what they do.

A manager of hooks installs a hook that never changes and reads what to run from its own files, so these
are pinned as well. Programs that a hook starts are not; they run in the sandbox with it. See
``docs/reference/actions.md``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from cockpit.access.run_program import run_git
from cockpit.act.pinned_files import PinnedFile, pin_files

COMMIT_HOOKS = (
    "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction",
    "post-index-change", "post-rewrite",
)  # fmt: skip
PUSH_HOOKS = ("pre-push", "reference-transaction")
_MANAGERS = (
    ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", "lefthook.yaml", "lefthook.toml",
    "lefthook.json", "lefthook-local.yml", ".overcommit.yml", ".lintstagedrc", ".lintstagedrc.json",
    "lint-staged.config.js", "package.json", "captainhook.json", "grumphp.yml", ".rusty-hook.toml",
)  # fmt: skip
_MOST_FILES = 200


class Hooks(Struct, frozen=True):
    """``names`` are the hooks that will run, ``pins`` the files that decide what they do."""

    folder: Path
    names: tuple[str, ...] = ()
    pins: tuple[PinnedFile, ...] = ()

    def words(self) -> str:
        """Return the hooks with the beginning of each one's digest, as a field of a proposal."""
        digests = {Path(pin.path).name: pin.sha256[:12] for pin in reversed(self.pins)}
        return ", ".join(f"{name} {digests.get(name, '')}".strip() for name in self.names)


async def find_hooks(root: Path, wanted: Sequence[str]) -> Hooks:
    """Return which of the ``wanted`` hooks git would run in ``root``, with their pins."""
    where = await run_git("rev-parse", "--git-path", "hooks", cwd=root, hooks=True)
    folder = root / where.text.rstrip("\n")
    names = tuple(name for name in wanted if _runs(folder / name))
    return Hooks(folder, names, pin_files(root, _deciding_files(root, folder)) if names else ())


def _runs(hook: Path) -> bool:
    return hook.is_file() and os.access(hook, os.X_OK)


def _deciding_files(root: Path, folder: Path) -> list[Path]:
    """List the files of the hooks' folder, and of a manager's beside it."""
    folders = [folder]
    if folder.name == "_":
        folders.append(folder.parent)  # husky's own folder has its hooks one above
    files = [root / name for name in _MANAGERS if (root / name).is_file()]
    for each in folders:
        for path in sorted(each.iterdir()) if each.is_dir() else ():
            if path.suffix != ".sample" and path.is_file() and len(files) < _MOST_FILES:
                files.append(path)
    return files
