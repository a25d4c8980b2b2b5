"""The branch of a pull request: what ``gh pr create`` has to push first.

gh asks on a terminal what to push; here the proposal shows it, and the push is part of the action. See
``docs/reference/actions.md``.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from cockpit.access.gh_command import GhCommand, parse_gh
from cockpit.access.run_program import run_git
from cockpit.act.commit_hooks import PUSH_HOOKS, find_hooks
from cockpit.act.pinned_files import PinnedFile
from cockpit.act.text_edits import ActionRefused
from cockpit.act.workspace import Workspace
from cockpit.core.text import pluralize


class Push(Struct, frozen=True):
    """A push: the commit with this id becomes ``branch`` on ``remote``.

    ``url`` is the remote's address for pushing, without its credentials; ``count`` the commits that it has
    not, as far as this clone knows, and None where it has no such branch; ``hooks`` are the files of the hook
    that runs.
    """

    remote: str
    branch: str
    commit: str
    url: str = ""
    count: int | None = None
    hooks: tuple[PinnedFile, ...] = ()

    def fields(self) -> list[tuple[str, str]]:
        """Return the lines of the proposal."""
        new = "a new branch" if self.count is None else pluralize(self.count, "new commit")
        return [("push", f"{self.branch} to {self.remote} ({new}, at {self.commit[:10]})")]

    def notes(self) -> list[str]:
        """Return what else the user should know."""
        notes = [f"{self.branch} is pushed to {self.url} before the pull request is opened."]
        if self.hooks:
            digests = ", ".join(f"{pin.path} {pin.sha256[:12]}" for pin in self.hooks)
            notes.append(
                "The repository's pre-push hook runs outside the sandbox, since it may need the network: "
                f"{digests}."
            )
        return notes

    def summary(self) -> str:
        """Return the beginning of the proposal's summary."""
        return f"Push {self.branch} to {self.remote}, then "

    def payload(self) -> dict[str, Any]:
        """Return the part of the action's payload that the adapter reads."""
        return {
            "remote": self.remote,
            "branch": self.branch,
            "commit": self.commit,
            "hooks": [pin.payload() for pin in self.hooks],
        }


async def plan_pull_request(command: GhCommand, ground: Workspace) -> tuple[GhCommand, Push | None]:
    """Return ``gh pr create`` with its head and base named, and the push that it needs.

    A head that the command names itself and that is not the current branch is not pushed. Raises
    :class:`ActionRefused` where there is no branch to open a pull request from.
    """
    named = dict(command.fields)
    branch = (await run_git("symbolic-ref", "--quiet", "--short", "HEAD", cwd=ground.root)).text
    branch = branch.strip()
    head = named.get("head", branch)
    if not head:
        raise ActionRefused(
            "gh pr create needs a branch, and none is checked out here. Name one with --head."
        )
    base = named.get("base") or await _default_branch(ground)
    if not base:
        raise ActionRefused("gh pr create needs a branch to merge into: name it with --base.")
    if head == base:
        raise ActionRefused(
            f"You are on {base}, the branch that the pull request would go into. The changes need a "
            f"branch of their own."
        )
    flags = [
        word
        for name in ("head", "base")
        if name not in named
        for word in (f"--{name}", head if name == "head" else base)
    ]
    complete = parse_gh([*command.argv, *flags], project_repo=ground.repo)
    return complete, await _plan_push(head, base, ground) if head == branch else None


async def _plan_push(branch: str, base: str, ground: Workspace) -> Push:
    root = ground.root
    commit = (await run_git("rev-parse", "--verify", f"refs/heads/{branch}", cwd=root)).text.strip()
    if not commit:
        raise ActionRefused(f"{branch} has no commit yet; commit your changes first.")
    remote = await _push_remote(branch, ground)
    for start in (f"refs/remotes/{remote}/{base}", f"refs/heads/{base}"):
        ahead = await run_git("rev-list", "--count", f"{start}..{commit}", "--", cwd=root)
        if ahead.ok and ahead.text.strip() == "0":
            raise ActionRefused(
                f"{branch} has no commit that {base} lacks; commit your changes first."
            )
        if ahead.ok:
            break
    tracking = f"refs/remotes/{remote}/{branch}"
    count = await run_git("rev-list", "--count", f"{tracking}..{commit}", "--", cwd=root)
    url = await run_git("remote", "get-url", "--push", remote, cwd=root)
    hooks = await find_hooks(root, PUSH_HOOKS)
    return Push(
        remote,
        branch,
        commit,
        url=_without_credentials(url.text.strip()),
        count=int(count.text) if count.ok else None,
        hooks=hooks.pins,
    )


async def _push_remote(branch: str, ground: Workspace) -> str:
    """Return the remote that git would push ``branch`` to."""
    remotes = (await run_git("remote", cwd=ground.root)).text.split()
    for setting in (
        f"branch.{branch}.pushRemote",
        "remote.pushDefault",
        f"branch.{branch}.remote",
    ):
        name = (await run_git("config", "--get", setting, cwd=ground.root)).text.strip()
        if name in remotes:
            return name
    if "origin" in remotes or len(remotes) == 1:
        return "origin" if "origin" in remotes else remotes[0]
    if not remotes:
        raise ActionRefused("This repository has no remote to push the branch to.")
    raise ActionRefused(
        f"There are {len(remotes)} remotes ({', '.join(remotes)}), and none is chosen for {branch}. The "
        f"user sets one with `git config remote.pushDefault NAME`."
    )


async def _default_branch(ground: Workspace) -> str:
    """Return the branch that changes go into, without its remote; empty where it is not known."""
    head = await run_git(
        "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD", cwd=ground.root
    )
    if head.ok:
        return head.text.strip().removeprefix("origin/")
    for name in ("main", "master", "trunk", "develop"):
        for space in ("heads", "remotes/origin"):
            there = await run_git(
                "show-ref", "--verify", "--quiet", f"refs/{space}/{name}", cwd=ground.root
            )
            if there.ok:
                return name
    return ""


def _without_credentials(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}" if mark else url
