"""One table: what programs do that a person should see, what is never run, and files that steer.

The sandbox confines; the table says which words a proposal shows, and what must wait where there is no
sandbox. :mod:`cockpit.access.commands.judge_command` judges by it. See ``docs/reference/actions.md``, risk.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Literal, NamedTuple


class Effect(NamedTuple):
    """One thing that a command does: ``leaves`` the machine, or asks something outside the project; is
    ``final``, so that it cannot be taken back."""

    words: str
    leaves: bool = False
    final: bool = False


POSTS = Effect("it publishes or posts", leaves=True, final=True)
REMOTE = Effect("it works on other machines", leaves=True, final=True)
NETWORK = Effect("it uses the network", leaves=True)
INSTALLS = Effect("it installs or removes software", leaves=True)
SERVICES = Effect("it ends or starts what runs outside the project", leaves=True)
REMOVES = Effect("it removes files", final=True)
LOSES = Effect("it can lose work in git", final=True)
REWRITES = Effect("it changes history in git")
SETS = Effect("it changes what git runs", final=True)
RIGHTS = Effect("it changes permissions")

_ROOT = "It asks for the rights of another user. cockpit runs nothing with more rights than yours."
_MACHINE = "It stops the machine."
COMMIT = "Use git_commit, which shows what is committed."
GITHUB = "Use the github tool, which shows the fields and the body before they are posted."
DENIED: Mapping[str, str] = {
    **dict.fromkeys(("sudo", "su", "doas", "pkexec", "runuser"), _ROOT),
    **dict.fromkeys(("shutdown", "reboot", "halt", "poweroff"), _MACHINE),
    "cockpit": "Only the user runs cockpit's own commands; an agent cannot approve.",
    "mkfs": "It formats a disk.",
}
"""Never run, whatever is approved: the words say what to do instead."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _all(effect: Effect, names: str) -> dict[str, Effect]:
    return dict.fromkeys(names.split(), effect)


EFFECTS: Mapping[str, Effect] = {
    **_all(REMOVES, "rm rmdir shred unlink truncate dd wipefs"),
    **_all(NETWORK, "curl wget nc ncat netcat socat telnet ftp ping"),
    **_all(REMOTE, "ssh scp sftp rsync kubectl helm terraform ansible aws gcloud az"),
    **_all(INSTALLS, "pipx uvx conda mamba brew apt apt-get dpkg yum dnf apk pacman snap"),
    **_all(POSTS, "twine hub"),
    **_all(SERVICES, "kill killall pkill crontab systemctl"),
    **_all(RIGHTS, "chmod chown chgrp setfacl"),
}
"""Programs with one effect, whatever their arguments."""
_PACKAGES = _all(
    INSTALLS,
    "install i ci add remove uninstall update upgrade sync exec x dlx get download pip tool mod",
) | _all(POSTS, "publish login deploy")
_DOCKER = _all(POSTS, "push login") | _all(
    SERVICES,
    "build buildx run exec compose start stop restart kill rm rmi create pull system volume network"
    " image container swarm cp save load import commit tag",
)
VERBS: Mapping[str, Mapping[str, Effect]] = {
    "git": {
        **_all(POSTS, "push send-email"),
        **_all(NETWORK, "fetch pull clone ls-remote submodule lfs"),
        **_all(REWRITES, "rebase merge cherry-pick revert am"),
        **_all(
            LOSES,
            "gc prune update-ref symbolic-ref filter-branch filter-repo replace fast-import",
        ),
        "rm": REMOVES,
    },
    **dict.fromkeys(
        _names("npm yarn pnpm bun pip pip3 uv poetry pdm cargo go gem bundle dotnet mvn"), _PACKAGES
    ),
    **dict.fromkeys(("docker", "podman"), _DOCKER),
}
"""Programs with effects by their verb."""


def _where(pattern: str, effect: Effect) -> tuple[re.Pattern[str], Effect]:
    return re.compile(pattern, re.DOTALL), effect


WORDS: Mapping[str, tuple[re.Pattern[str], Effect]] = {
    "find": _where(r".* -(?:delete|fprint\w*|fls)\b.*", REMOVES),
    "curl": _where(
        r".* (?:-[a-zA-Z]*(?:[dFT]|X(?! ?(?:GET|HEAD)\b))|--(?:data|form|json|upload|request)).*",
        POSTS,
    ),
    "wget": _where(r".* --(?:post|body|method).*", POSTS),
    "git reset": _where(r".* --(?:hard|merge|keep)\b.*", LOSES),
    "git clean": _where(r"(?!.* (?:-\w*n|--dry-run)\b).*", LOSES),
    "git restore": _where(r"(?!.* (?:-S|--staged)\b).*|.* (?:-\w*W|--worktree)\b.*", LOSES),
    "git checkout": _where(
        r".* (?:--|-f|--force|-p|-m|-B|--ours|--theirs|\.)(?: .*)?"
        r"| [^- ]\S* [^- ].*| [^- ]\S*(?:/|\.[A-Za-z]\w*)",
        LOSES,
    ),
    "git switch": _where(r".* (?:-f|--force|--discard-changes|-C|-m)\b.*", LOSES),
    "git branch": _where(r".* (?:-\w*[DMCf]|--force|--delete)\b.*", LOSES),
    "git tag": _where(r".* (?:-[df]|--delete|--force)\b.*", LOSES),
    "git stash": _where(r" (?:drop|clear)\b.*", LOSES),
    "git reflog": _where(r" (?:expire|delete)\b.*", LOSES),
    "git worktree": _where(r" (?:remove|prune|move)\b.*", LOSES),
    "git remote": _where(r" (?:add|set-\w+|rename|rm|remove|update|prune)\b.*", LOSES),
    "git config": _where(r"(?! (?:--(?:get|list|show)|-l|get|list)| [\w.-]+$).*", SETS),
}
"""What the words behind a program, or a verb of git, add: each word has a blank before it."""

WRAPPERS = _names(
    "env timeout nice ionice nohup setsid stdbuf time command builtin exec busybox xargs xvfb-run"
    " parallel watch strace find fd script trap flock chroot unshare nsenter setpriv prlimit bwrap"
    " systemd-run"
)
"""Programs that run another program, which they are given as a word."""
RUNNERS = _names("uv poetry pipenv hatch pdm rye coverage bundle npx bunx")
"""Programs that run what a project has installed, which is one of their words."""
SHELLS = _names("sh bash zsh dash ksh ash mksh fish csh tcsh rbash")
INTERPRETERS = re.compile(
    r"(?:python|pypy)[0-9.]*|node|nodejs|deno|bun|perl|ruby|php|lua|tclsh|Rscript|osascript|pwsh"
)
HIDES = _names("eval source . vi vim nvim ex ed emacs gdb")
"""Programs that run what a word, a file or their own language says."""
LANGUAGES = _names("awk gawk mawk")
ACTIVATES = re.compile(r"(?!/|~)(?!.*\.\.)[\w./-]*bin/activate")
"""The script of a virtual environment that a shell takes in."""

LOADED = re.compile(
    r"(?:PATH|LD_.*|DYLD_.*|PYTHON(?:PATH|STARTUP|HOME)|GIT_.*|NODE_OPTIONS|BASH_ENV|ENV|IFS|PERL5OPT|RUBYOPT"
    r"|JAVA_TOOL_OPTIONS|PROMPT_COMMAND)"
)
"""Variables that change what is run."""
STEERS = re.compile(
    r"(?:.*(?:PAGER|EDITOR|VISUAL|BROWSER|SHELL|LESSOPEN|COMMAND|ASKPASS|OPTS|OPTIONS|FLAGS|WRAPPER|PROGRAM)"
    r"|CC|CXX|LD|AR|RUSTC)"
)
"""Variables by which a program may run another one."""

KNOWN = (
    _names(
        """
        cat head tail wc nl ls pwd cd pushd popd echo printf test [ true false : mkdir touch cp mv ln stat
        file basename dirname realpath readlink cut tr uniq comm diff cmp paste fold column tac rev seq date
        sleep which type tree du df id uname whoami hostname printenv export unset set shift read return exit
        wait local declare md5sum sha1sum sha256sum sha512sum cksum base64 xxd od hexdump strings jq yq grep
        egrep fgrep rg sort find fd sed xargs pytest unittest doctest compileall py_compile venv build tox
        nox coverage pre-commit ruff mypy black isort flake8 pylint pyright bandit mkdocs sphinx-build tsc
        eslint prettier jest vitest mocha webpack vite make rustfmt gofmt gcc cc g++ c++ clang clang++ rustc
        javac gradle gradlew phpunit rspec rake rubocop shellcheck shfmt ps lsof pgrep gh
        """
    )
    | EFFECTS.keys()
    | VERBS.keys()
)
"""Programs that run nothing but what the project's files say, so long as no word of ``RUNS`` is with them.

Outside the sandbox every other program waits for the user: it may run anything that its words say
(``tar --to-command``, ``watch``, ``expect -c``). Scripts of the project do what the project says.
"""
KNOWN_VERBS = _names(
    """
    add status diff log show branch stash tag blame grep rev-parse rev-list ls-files ls-tree mv switch init
    describe shortlog cat-file commit merge-base check-ignore apply checkout restore reset merge rebase
    cherry-pick revert worktree config remote reflog clean rm fetch pull push
    """
)
"""Verbs of git that run no program that they name."""
RUNS: Mapping[str, re.Pattern[str]] = {
    "git": re.compile(
        r"--(?:ext-diff|textconv|open-files.*|exec.*|extcmd.*|upload-pack.*|receive-pack.*)|-[Ox].*"
    ),
    "sort": re.compile(r"--comp.*"),
    "rg": re.compile(r"--(?:pre|hostname-bin)(?:=.*)?"),
    "fd": re.compile(r"-[a-zA-Z]*[xX].*|--exec.*"),
    "find": re.compile(r"-(?:exec|ok)(?:dir)?"),
    "make": re.compile(
        r"-f-|-|--file=-|--(?:ev|makefile=-).*|\.?(?:SHELL|MAKE|MAKEFLAGS|SHELLFLAGS)[+:?!]?=.*"
    ),
    "cargo": re.compile(r"--config.*"),
    "go": re.compile(r"--?(?:exec|toolexec|vettool|overlay).*"),
    "npm": re.compile(r"-c|--(?:call|script-shell|node-options).*"),
    **dict.fromkeys(
        ("gcc", "cc", "g++", "c++", "clang", "clang++", "rustc"),
        re.compile(r"-(?:wrapper|fplugin|specs|B|X|load|fuse-ld|Wl|C).*|@.*|--config.*"),
    ),
}  # fmt: skip
"""Words by which a known program runs another one."""
PLAIN_SED = re.compile(
    r"\s*(?:(?:\d+|\$|/[^/\n]*/)(?:,(?:\d+|\$|/[^/\n]*/))?)?!?\s*"
    r"(?:[pdq=]|s([^\w\s\\])(?:\\.|(?!\1)[^\\])*\1(?:\\.|(?!\1)[^\\])*\1[gIip0-9]*)?\s*"
)
"""One command of sed that neither runs a program nor writes another file."""

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
