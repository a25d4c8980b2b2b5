"""The tables of risk: programs and verbs by what they can do, and files by what they steer.

:mod:`cockpit.act.command_risk` judges commands by them. A program that is missing is judged medium, never
low: an addition can only lower the risk of a common command or raise that of a dangerous one. See
``docs/reference/actions.md``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Literal

from cockpit.access.reads.program_table import PROGRAMS

_ROOT = "It asks for the rights of another user. cockpit runs nothing with more rights than yours."

DENIED: Mapping[str, str] = {
    "sudo": _ROOT,
    "su": _ROOT,
    "doas": _ROOT,
    "pkexec": _ROOT,
    "runuser": _ROOT,
    "gh": "Use the github tool, which shows the fields and the body before they are posted.",
    "hub": "Use the github tool, which shows the fields and the body before they are posted.",
    "cockpit": "Only the user runs cockpit's own commands; an agent cannot approve.",
    "shutdown": "It stops the machine.",
    "reboot": "It stops the machine.",
    "halt": "It stops the machine.",
    "poweroff": "It stops the machine.",
}
"""Never run, whatever is approved: the words say what to do instead."""

PASS_THROUGH: Mapping[str, frozenset[str]] = {
    "env": frozenset({"-u", "--unset", "-C", "--chdir"}),
    "timeout": frozenset({"-s", "--signal", "-k", "--kill-after"}),
    "nice": frozenset({"-n", "--adjustment"}),
    "ionice": frozenset({"-c", "-n", "--class", "--classdata"}),
    "chrt": frozenset(),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "time": frozenset({"-f", "-o"}),
    "command": frozenset(),
    "builtin": frozenset(),
    "exec": frozenset({"-a"}),
    "busybox": frozenset(),
    "strace": frozenset({"-e", "-o", "-p"}),
    "unshare": frozenset(),
    "watch": frozenset({"-n", "--interval"}),
    "parallel": frozenset({"-j", "--jobs"}),
    "xargs": frozenset({"-I", "-n", "-P", "-L", "-d", "-E", "-s", "-a", "--max-args"}),
    "prlimit": frozenset(),
    "setpriv": frozenset(),
    "bwrap": frozenset(),
}
"""Programs that run the command in their arguments, with the options that take a value."""

SHELLS = frozenset(
    {"sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "fish", "csh", "tcsh", "rbash"}
)

INTERPRETERS = frozenset({"python", "node", "nodejs", "deno", "bun", "perl", "ruby", "php", "lua"})

RUNNERS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "uv": (
        frozenset({"run"}),
        frozenset({"pip", "add", "remove", "sync", "lock", "tool", "publish"}),
    ),
    "poetry": (frozenset({"run"}), frozenset({"add", "remove", "install", "update", "publish"})),
    "pdm": (
        frozenset({"run"}),
        frozenset({"add", "remove", "install", "update", "publish", "sync"}),
    ),
    "pipenv": (frozenset({"run"}), frozenset({"install", "uninstall", "update", "sync", "lock"})),
    "hatch": (frozenset({"run"}), frozenset({"publish", "env"})),
    "rye": (frozenset({"run"}), frozenset({"add", "remove", "sync", "install", "publish"})),
    "bundle": (frozenset({"exec"}), frozenset({"install", "update", "add", "remove"})),
    "coverage": (frozenset({"run"}), frozenset()),
}
"""Runners: verbs that run the command behind them, verbs that change an installation."""

SUBCOMMANDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "cargo": (
        frozenset({"test", "check", "clippy", "build", "nextest", "bench", "doc", "tree"}),
        frozenset({"install", "publish", "login", "add", "update", "yank", "owner"}),
    ),
    "go": (
        frozenset({"test", "vet", "build", "list", "doc", "version"}),
        frozenset({"get", "install", "mod", "generate"}),
    ),
    "npm": (
        frozenset({"test", "t", "ls", "outdated"}),
        frozenset({"install", "i", "ci", "add", "publish", "uninstall", "update", "exec", "login"}),
    ),
    "yarn": (
        frozenset({"test"}),
        frozenset({"add", "install", "publish", "remove", "dlx", "upgrade"}),
    ),
    "pnpm": (
        frozenset({"test"}),
        frozenset({"add", "install", "publish", "remove", "dlx", "update"}),
    ),
    "pip": (
        frozenset({"list", "show", "freeze", "check"}),
        frozenset({"install", "uninstall", "download", "wheel"}),
    ),
    "dotnet": (
        frozenset({"test", "build"}),
        frozenset({"add", "nuget", "publish", "tool", "restore"}),
    ),
    "mvn": (frozenset({"test", "verify"}), frozenset({"deploy", "install"})),
    "gradle": (frozenset({"test", "check"}), frozenset({"publish"})),
}
"""Programs judged by their verb: (low, high); any other verb is medium."""

_NET = "it talks to the network"
_INSTALL = "it installs software"
_MACHINE = "it reaches other machines or services"
_PROCESS = "it ends or schedules other processes"

HIGH: Mapping[str, str] = {
    "curl": _NET,
    "wget": _NET,
    "http": _NET,
    "aria2c": _NET,
    "nc": _NET,
    "ncat": _NET,
    "netcat": _NET,
    "socat": _NET,
    "telnet": _NET,
    "ftp": _NET,
    "sftp": _NET,
    "ssh": _MACHINE,
    "scp": _MACHINE,
    "rsync": _MACHINE,
    "docker": _MACHINE,
    "podman": _MACHINE,
    "kubectl": _MACHINE,
    "helm": _MACHINE,
    "aws": _MACHINE,
    "gcloud": _MACHINE,
    "az": _MACHINE,
    "terraform": _MACHINE,
    "ansible": _MACHINE,
    "ansible-playbook": _MACHINE,
    "twine": "it publishes a package",
    "pip2": _INSTALL,
    "pip3": _INSTALL,
    "pipx": _INSTALL,
    "uvx": _INSTALL,
    "npx": _INSTALL,
    "bunx": _INSTALL,
    "conda": _INSTALL,
    "mamba": _INSTALL,
    "brew": _INSTALL,
    "apt": _INSTALL,
    "apt-get": _INSTALL,
    "dpkg": _INSTALL,
    "yum": _INSTALL,
    "dnf": _INSTALL,
    "apk": _INSTALL,
    "pacman": _INSTALL,
    "snap": _INSTALL,
    "gem": _INSTALL,
    "easy_install": _INSTALL,
    "ensurepip": _INSTALL,
    "kill": _PROCESS,
    "killall": _PROCESS,
    "pkill": _PROCESS,
    "crontab": _PROCESS,
    "at": _PROCESS,
    "systemctl": _PROCESS,
    "service": _PROCESS,
    "launchctl": _PROCESS,
    "mount": "it changes file systems",
    "umount": "it changes file systems",
    "dd": "it writes raw data",
    "shred": "it destroys files",
    "truncate": "it cuts files",
    "gpg": "it uses your keys",
    "ssh-keygen": "it uses your keys",
    "ssh-add": "it uses your keys",
    "security": "it reads stored passwords",
    "pass": "it reads stored passwords",
    "chroot": "it leaves the project",
    "nsenter": "it leaves the project",
    "tmux": "it starts programs that stay",
    "screen": "it starts programs that stay",
}

NETWORKED = frozenset(
    [name for name, why in HIGH.items() if why in {_NET, _MACHINE, _INSTALL}]
    + ["push", "pull", "fetch", "clone", "ls-remote", "twine"]
)

MEDIUM: Mapping[str, str] = {
    "mv": "it moves files",
    "cp": "it copies files",
    "ln": "it makes links",
    "mkdir": "it makes directories",
    "rmdir": "it removes directories",
    "touch": "it makes files",
    "tee": "it writes files",
    "install": "it writes files",
    "patch": "it rewrites files",
    "tar": "it may overwrite files",
    "unzip": "it may overwrite files",
    "make": "it runs the Makefile's commands",
    "just": "it runs the justfile's commands",
    "tox": "it builds environments",
    "nox": "it builds environments",
    "pre-commit": "it runs hooks that rewrite files",
    "black": "it rewrites files",
    "isort": "it rewrites files",
    "prettier": "it rewrites files",
    "gofmt": "it may rewrite files",
}

LOW = frozenset(
    """
    pytest py.test unittest doctest mypy pyright flake8 pylint pyflakes pycodestyle bandit vulture
    lint-imports tsc eslint jest vitest mocha rspec phpunit ctest compileall py_compile tokenize
    json.tool shellcheck hadolint yamllint cloc tokei scc sleep yes wait cd return exit set shift less
    ag more expr
    """.split()  # noqa: SIM905 - a list of forty quoted words a line each is no easier to read
)
"""Tests, checkers and builtins: low in the sandbox, though they run the project's own code. No reads."""

READERS = frozenset(PROGRAMS) | {"echo", "printf", "test", "[", "type", "command"}
"""Programs that read, judged by their options: :mod:`cockpit.access.reads.judge_reads`."""

GIT_LOW = frozenset(
    """
    status diff log show blame annotate ls-files ls-tree rev-parse rev-list describe shortlog grep
    cat-file merge-base name-rev whatchanged diff-tree diff-index diff-files for-each-ref version
    check-ignore check-attr count-objects cherry range-diff help
    """.split()  # noqa: SIM905 - as above
)

GIT_MEDIUM = frozenset(["add", "mv", "apply", "stash", "branch", "tag", "restore", "switch"])

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
