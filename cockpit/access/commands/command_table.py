"""One table: what a person should see of a command before it runs, and files by what they steer.

It informs the user and raises the risk; the sandbox confines. A program that is not in it is of medium risk.
:mod:`cockpit.access.commands.judge_command` judges by it. See ``docs/reference/actions.md``, risk.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Literal

_ROOT = "It asks for the rights of another user. cockpit runs nothing with more rights than yours."
_GITHUB = "Use the github tool, which shows the fields and the body before they are posted."
_MACHINE = "It stops the machine."

DENIED: Mapping[str, str] = {
    **dict.fromkeys(("sudo", "su", "doas", "pkexec", "runuser"), _ROOT),
    **dict.fromkeys(("gh", "hub"), _GITHUB),
    **dict.fromkeys(("shutdown", "reboot", "halt", "poweroff"), _MACHINE),
    "cockpit": "Only the user runs cockpit's own commands; an agent cannot approve.",
    "mkfs": "It formats a disk.",
}
"""Never run, whatever is approved: the words say what to do instead."""

REMOVES = "it removes or overwrites files"
NETWORK = "it uses the network"
INSTALLS = "it installs or removes software"
PUBLISHES = "it publishes"
REWRITES = "it can lose or rewrite work in git"
REMOTE = "it reaches other machines or services"
PROCESSES = "it ends or schedules processes"
RIGHTS = "it changes permissions"

ONLINE = frozenset({NETWORK, INSTALLS, PUBLISHES, REMOTE})
"""What fails in the sandbox, whose network is off."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _programs(effect: str, names: str) -> dict[str, str]:
    return dict.fromkeys(_names(names), effect)


EFFECTS: Mapping[str, str] = {
    **_programs(REMOVES, "rm rmdir shred unlink truncate dd wipefs"),
    **_programs(NETWORK, "curl wget nc ncat netcat socat telnet ftp ping"),
    **_programs(
        REMOTE, "ssh scp sftp rsync docker podman kubectl helm terraform ansible aws gcloud az"
    ),
    **_programs(
        INSTALLS, "pip3 pipx uvx npx bunx conda mamba brew apt apt-get dpkg yum dnf apk pacman snap"
    ),
    **_programs(PUBLISHES, "twine"),
    **_programs(PROCESSES, "kill killall pkill crontab systemctl"),
    **_programs(RIGHTS, "chmod chown chgrp setfacl"),
}
"""Programs with one effect, whatever their arguments."""

_PACKAGES = _programs(
    INSTALLS, "install i ci add remove uninstall update upgrade sync exec dlx get download pip tool"
) | _programs(PUBLISHES, "publish login deploy")
VERBS: Mapping[str, Mapping[str, str]] = {
    "git": {
        **_programs(PUBLISHES, "push send-email"),
        **_programs(NETWORK, "fetch pull clone ls-remote remote submodule lfs"),
        **_programs(
            REWRITES,
            "reset rebase clean checkout restore rm merge cherry-pick revert am gc"
            " prune reflog update-ref symbolic-ref filter-branch filter-repo replace worktree config"
            " fast-import",
        ),
    },
    **dict.fromkeys(
        _names("npm yarn pnpm bun pip uv poetry pdm cargo go gem bundle dotnet mvn"), _PACKAGES
    ),
}
"""Programs with effects by their verb."""

CARRIERS = _names(
    "env timeout nice ionice nohup setsid stdbuf time command builtin exec busybox xargs "
    "parallel watch strace find fd script uv poetry pipenv hatch pdm coverage bundle trap "
    "flock chroot unshare nsenter setpriv prlimit bwrap systemd-run"
)
"""Programs that run another one, which is one of their words."""
SHELLS = _names("sh bash zsh dash ksh ash mksh fish csh tcsh rbash")
INTERPRETERS = re.compile(
    r"(?:python|pypy)[0-9.]*|node|nodejs|deno|bun|perl|ruby|php|lua|tclsh|Rscript|osascript|pwsh"
)
HIDES = _names("eval source . awk gawk mawk vi vim nvim ex ed emacs gdb")
"""Programs whose own language runs programs, out of a word or a file."""

_STEERING = re.compile(
    r"(?ix) ^(?: \.github/ | \.gitlab-ci | \.circleci/ | \.cockpit/(?!reviews/[^/]+\.md$) )"
    r" | (?:^|/)(?: \.husky/ | \.vscode/ | \.idea/ | \.devcontainer/ | \.claude/ | \.agents/ | \.codex/"
    r" | \.gemini/ | \.qwen/ | \.opencode/ | \.cursor/ | \.windsurf/ | \.kiro/ )"
    r" | (?:^|/)(?: Makefile | justfile | Dockerfile | Jenkinsfile | \.envrc | \.env(?:\..*)?"
    r" | \.pre-commit-config\.yaml | \.gitattributes | \.gitmodules | AGENTS\.md | CLAUDE\.md"
    r" | GEMINI\.md | QWEN\.md | SKILL\.md | \.mcp\.json | opencode\.jsonc? | \.cursorrules"
    r" | \.windsurfrules | sitecustomize\.py | \.npmrc | \.pypirc | pip\.conf ) $"
)


def file_risk(path: str) -> Literal["low", "medium", "high"]:
    """Return high for files that steer what runs or what agents read as rules, low for prose, else medium."""
    if _STEERING.search(path):
        return "high"
    if os.path.splitext(path)[1].casefold() in {".md", ".rst", ".txt", ".adoc"}:
        return "low"
    return "medium"
