"""An external agent in the sandbox: a home with its own configuration, its provider, a view of git.

Its home is a copy of what the list of known agents names, gone with the run; only a renewed login is
brought back. So nothing that it writes there (hooks, servers, memories) runs in the user's next session
outside. It gets no token: our server and hooks run outside, behind the gate. See
``docs/reference/agents.md``.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from cockpit.act.sandbox.bubblewrap import Extra, Sandbox
from cockpit.act.sandbox.git_places import find_git_places
from cockpit.act.sandbox.git_view import GitView, ViewRefused, open_view, take_over
from cockpit.act.sandbox.run_confined import Watch
from cockpit.act.sandbox.variables import clean_environment
from cockpit.agents.confine import agent_relay
from cockpit.agents.confine.agent_gate import GateList, open_gate
from cockpit.agents.confine.copy_sessions import copy_sessions
from cockpit.agents.registry.known_agents import KnownAgent, recognise_agent
from cockpit.agents.runs.agent_hooks import hook_groups
from cockpit.agents.runs.run_folder import SERVER
from cockpit.core.project.own_programs import find_program
from cockpit.core.text import end_sentence
from cockpit.loop.runtime_settings import RunnerSettings

INSIDE = Path("/run/cockpit")
"""Where the agent sees what it gets from us."""

_RELAY = INSIDE / "relay.py"
_MOST_COPIED = 64 * 1024 * 1024
_LARGEST_LOGIN = 1024 * 1024
_MOST_LINKS = 40
"""As many as Linux follows."""
_CERTIFICATES = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class AgentLaunch(Struct):
    """An agent that is ready to start."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    files: tuple[int, ...]
    watched: Watch | None = None
    """Ends what passes the sandbox's limits; None outside of it."""
    notes: list[str] = field(default_factory=list)
    """What the user should know of the run; complete when the context has ended."""
    copy_sessions: Callable[[Path], None] = lambda place: None
    """Copies the agent's own sessions, as they are now, into the folder that another run gets as ``kept``."""

    def begin(self, pid: int) -> None:
        """Watch the process that was started."""
        if self.watched is not None:
            self.watched.begin(pid)

    def note_end(self) -> None:
        """Note that it was ended for passing a limit."""
        if self.watched is not None and self.watched.reason:
            self.notes.append(f"It was ended: {end_sentence(self.watched.reason)}")


def why_unconfined(
    sandbox: Sandbox, runner: RunnerSettings, agent: KnownAgent | None = None
) -> str:
    """Say why this runner's agent does not run in the sandbox; '' when it does.

    ``agent`` is what it needs there, where the registry says it; else its program is recognised.
    """
    if runner.sandbox is False or not sandbox.choices.agents:
        return "you switched it off in your configuration"
    if not sandbox.works:
        return sandbox.missing
    if (agent or recognise_agent(runner.command)) is None and not (
        runner.sandbox or runner.hosts or runner.home
    ):
        program = Path(runner.command[0]).name
        return f"cockpit does not know what {program} needs; name it in [runner.{runner.name}] hosts and home"
    return ""


@asynccontextmanager
async def launch_agent(
    sandbox: Sandbox,
    runner: RunnerSettings,
    build_argv: Callable[[Mapping[str, str]], Sequence[str]],
    values: Mapping[str, str],
    environment: Mapping[str, str],
    worktree: Path,
    *,
    unconfined: str,
    needs: KnownAgent | None = None,
    kept: Path | None = None,
) -> AsyncIterator[AgentLaunch]:
    """Yield the agent's launch; when the context ends, its commits and its login are brought back.

    ``build_argv`` gives its command for ``values`` of placeholders; ``environment`` is what it gets outside.
    There it runs where ``unconfined`` says why. ``needs`` is what the registry says of it. Its own sessions
    are kept in the folder ``kept``, so that it can load them in a later run. Raises ``ViewRefused``, also in
    the end, when its commits cannot be taken over.
    """
    if unconfined:
        yield AgentLaunch(tuple(build_argv(values)), environment, ())
        return
    agent = needs or recognise_agent(runner.command)
    base = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="cockpit-agent-"))
    places, ports = _places(runner, agent, environment)
    ours = {name: value for name, value in environment.items() if name.startswith("COCKPIT_")}
    listed = GateList(
        places,
        _calls(environment.get("COCKPIT_APPROVE", "ask")),
        worktree,
        # Programs of ours, outside: they find the project's store by this process's own variables.
        {**os.environ, **ours, "CLAUDE_PROJECT_DIR": str(worktree)},
        environment.get("HTTPS_PROXY") or environment.get("https_proxy", ""),
    )
    notes: list[str] = []
    try:
        home = await asyncio.to_thread(_build_home, base, runner, agent, environment)
        if agent is not None and kept is not None:
            await asyncio.to_thread(_copy_sessions, agent, kept, home)
        await asyncio.to_thread(_write_inner_files, base, values)
        async with AsyncExitStack() as stack:
            view = await _open_view(stack, worktree)
            await stack.enter_async_context(open_gate(base / "gate", listed))
            inner = _inner_environment(runner, agent, environment)
            argv = build_argv(_inner_values(values))
            extra = _extra(base, home, view, runner, agent, environment)
            served = (*_python(), str(_RELAY), "serve", ",".join(ports), "--", *argv)
            launch = stack.enter_context(sandbox.launch(served, worktree, inner, extra=extra))
            watched = Watch(sandbox.choices.limits, worktree)
            try:
                prepared = AgentLaunch(launch.argv, inner, launch.files, watched, notes)
                if agent is not None:
                    prepared.copy_sessions = partial(_copy_sessions, agent, home)
                yield prepared
            finally:
                await asyncio.shield(watched.end())
                if agent is not None:
                    await asyncio.to_thread(_bring_login_back, base, home, agent, environment)
                    if kept is not None:
                        await asyncio.to_thread(_copy_sessions, agent, home, kept)
                if view is not None:
                    notes += await asyncio.shield(_take_commits(view, sandbox, environment))
                notes += [
                    f"It asked for {place}, which is not on its list."
                    for place in sorted(listed.refused)
                ]
    finally:
        await asyncio.to_thread(shutil.rmtree, base, ignore_errors=True)


async def _open_view(stack: AsyncExitStack, worktree: Path) -> GitView | None:
    places = await asyncio.to_thread(find_git_places, worktree)
    return None if places is None else await stack.enter_async_context(open_view(worktree, places))


async def _take_commits(
    view: GitView, sandbox: Sandbox, environment: Mapping[str, str]
) -> list[str]:
    """Take over what the agent committed: on its own branch, and on branches that it made."""
    own = view.head.removeprefix("ref: ")
    try:
        taken = await take_over(
            view,
            sandbox,
            clean_environment(environment),
            lambda ref: ref == own or ref not in view.refs,
        )
    except ViewRefused as error:
        return [f"Its commits stay behind, and its files are there uncommitted. {error}"]
    return [f"{words}." for words in taken.left]


def relay_server() -> dict[str, Any]:
    """Return how a confined agent starts our MCP server: through the gate, without a token of its own."""
    relay = _relay_command()
    return {"type": "stdio", "command": relay[0], "args": [*relay[1:], "mcp"], "env": {}}


def _copy_sessions(agent: KnownAgent, source: Path, target: Path) -> None:
    """Copy the agent's own sessions. They are data that only this agent reads, in a sandbox again."""
    copy_sessions(agent.sessions, source, target, _MOST_COPIED)


def _python() -> tuple[str, ...]:
    return (os.path.realpath(sys.executable), "-I", "-S")


def _calls(policy: str) -> dict[str, tuple[str, ...]]:
    ours = (sys.executable, "-P", "-m", "cockpit")
    hook = ("hook", "--agent", "claude", "--policy", policy)
    return {"mcp": (*ours, "mcp"), "hook": (*ours, *hook)}


def _write_inner_files(base: Path, values: Mapping[str, str]) -> None:
    """Write the files that placeholders name, as they must be in the sandbox."""
    folder = base / "run"
    folder.mkdir()
    relay = _relay_command()
    outside = json.loads(Path(values["hooks"]).read_text(encoding="utf-8"))
    asks = "PermissionRequest" not in outside["hooks"]
    server = {name: value for name, value in relay_server().items() if name != "env"}
    texts = {
        "prompt.md": values["prompt"],
        "mcp.json": json.dumps({"mcpServers": {SERVER: server}}),
        "hooks.json": json.dumps({"hooks": hook_groups("claude", shlex.join(relay), asks=asks)}),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", errors="replace")


def _relay_command() -> tuple[str, ...]:
    """Return the words that start our relay inside, to which a command of ours is added."""
    return (*_python(), str(_RELAY), "call")


def _inner_values(values: Mapping[str, str]) -> dict[str, str]:
    folder, relay = INSIDE / "run", _relay_command()
    return {
        **values,
        "mcp_program": json.dumps(relay[0]),
        "mcp_arguments": json.dumps([*relay[1:], "mcp"]),
        "prompt_file": str(folder / "prompt.md"),
        "mcp_config": str(folder / "mcp.json"),
        "hooks": str(folder / "hooks.json"),
    }


def _places(
    runner: RunnerSettings, agent: KnownAgent | None, environment: Mapping[str, str]
) -> tuple[frozenset[str], list[str]]:
    """Return the servers that the agent reaches, and the ports of those on this machine."""
    named = [*runner.hosts, *(agent.hosts if agent else ())]
    named += [
        environment[name] for name in (agent.addresses if agent else ()) if environment.get(name)
    ]
    places, ports = set(), []
    for each in named:
        address = urlsplit(each if "://" in each else f"https://{each}")
        host = (address.hostname or "").lower()
        port = address.port or (80 if address.scheme == "http" else 443)
        if host in _LOOPBACK:
            ports.append(str(port))
            host = "127.0.0.1"
        if host:
            places.add(f"{host}:{port}")
    return frozenset(places), sorted(set(ports))


def _inner_environment(
    runner: RunnerSettings, agent: KnownAgent | None, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the agent's variables: none of ours, and the proxy that is the gate."""
    variables = agent.variables if agent else ()
    kept = clean_environment(environment, (*runner.env, *variables))
    inner = {name: value for name, value in kept.items() if not name.startswith("COCKPIT_")}
    gate = f"http://127.0.0.1:{agent_relay.PROXY_PORT}"
    for name, value in (
        ("HTTPS_PROXY", gate),
        ("HTTP_PROXY", gate),
        ("NO_PROXY", ",".join(_LOOPBACK)),
    ):
        inner |= {name: value, name.lower(): value}
    return inner


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or "/root")


def _source(agent: KnownAgent | None, environment: Mapping[str, str], name: str) -> Path:
    """Return where a path of the agent's home really is: its folder may be elsewhere."""
    if agent is not None:
        variable, folder = agent.folder
        elsewhere = environment.get(variable, "") if variable else ""
        inside = name.removeprefix(f"{folder}/")
        if elsewhere and inside != name:
            return Path(elsewhere) / inside
        if elsewhere and (Path(elsewhere) / name).is_file():
            return Path(elsewhere) / name
    return _home(environment) / name


def _build_home(
    base: Path, runner: RunnerSettings, agent: KnownAgent | None, environment: Mapping[str, str]
) -> Path:
    """Build the home and a second copy of the login, to tell later whether it was renewed."""
    home, left = base / "home", _MOST_COPIED
    home.mkdir()
    names = [*runner.home, *(agent.copies if agent else ())]
    login = agent.login if agent else ()
    for name in (*names, *login):
        source = _source(agent, environment, name)
        target = base / "home" / _target(agent, environment, name)
        left -= _copy(source, target, left)
    for name in login:
        _copy(_source(agent, environment, name), base / "login" / name, _LARGEST_LOGIN)
    return home


def _target(agent: KnownAgent | None, environment: Mapping[str, str], name: str) -> str:
    # With a folder of its own, Claude Code keeps its other file in it as well.
    variable, folder = agent.folder if agent else ("", "")
    moved = variable and environment.get(variable) and not name.startswith(f"{folder}/")
    return f"{folder}/{name}" if moved else name


def _copy(source: Path, target: Path, most: int) -> int:
    """Copy a file or a folder, links as links, up to ``most`` bytes; returns the bytes."""
    if source.is_file() and source.stat().st_size <= most:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o600)
        return target.stat().st_size
    if not source.is_dir():
        return 0
    size = sum(each.lstat().st_size for each in source.rglob("*") if each.is_file())
    if size <= most:
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        return size
    return 0


def _extra(
    base: Path,
    home: Path,
    view: GitView | None,
    runner: RunnerSettings,
    agent: KnownAgent | None,
    environment: Mapping[str, str],
) -> Extra:
    extra = Extra() if view is None else view.extra()
    prefix = Path(sys.base_prefix)
    shown = [
        (Path(agent_relay.__file__), _RELAY),
        (base / "run", INSIDE / "run"),
        (base / "gate", INSIDE / "gate"),
    ]
    wanted = [prefix, *_installation(runner, environment)]
    wanted += [_home(environment) / name for name in (agent.programs if agent else ())]
    wanted += [Path(environment[name]) for name in _CERTIFICATES if environment.get(name)]
    shown += [
        (place, place) for place in wanted if place.exists() and not place.is_relative_to("/usr")
    ]
    variables = {}
    if agent is not None and environment.get(agent.folder[0], ""):
        variables[agent.folder[0]] = str(_home(environment) / agent.folder[1])
    return replace(extra, read=(*shown, *extra.read), home=home, variables=variables)


def _installation(runner: RunnerSettings, environment: Mapping[str, str]) -> list[Path]:
    """List where the agent's program is installed: the user named it, so its links are followed."""
    program = find_program(runner.command[0], environment.get("PATH"))
    if program is None:
        return []
    places = [Path(program).parent]
    for place in (*_follow_links(Path(program)), Path(program).resolve()):
        modules = [above for above in place.parents if above.name == "node_modules"]
        places.append(modules[-1] if modules else place.parent)
    home = _home(environment)
    return [place for place in dict.fromkeys(places) if not home.is_relative_to(place)]


def _follow_links(program: Path) -> Iterator[Path]:
    """Yield where the program's links lead as names: a folder on the way may be a link, too.

    In the sandbox the folders on the PATH have their names from outside, and links start from those.
    """
    place = program
    for _ in range(_MOST_LINKS):
        if not place.is_symlink():
            return
        place = Path(os.path.normpath(place.parent / os.readlink(place)))  # noqa: PTH115 - as written
        yield place


def _bring_login_back(
    base: Path, home: Path, agent: KnownAgent, environment: Mapping[str, str]
) -> None:
    """Bring a renewed login back, unless it was renewed outside meanwhile or is not one."""
    for name in agent.login:
        new, before = home / name, base / "login" / name
        source = _source(agent, environment, name)
        is_own = new.resolve() == home.resolve() / name  # a link leads to what is not the agent's
        if not is_own or not new.is_file() or new.stat().st_size > _LARGEST_LOGIN:
            continue
        content = new.read_bytes()
        known_before = before.read_bytes() if before.is_file() else None
        now = source.read_bytes() if source.is_file() else None
        if known_before is None or content == known_before or now != known_before:
            continue
        try:
            if not isinstance(json.loads(content), dict):
                continue
        except ValueError:
            continue
        source = source.resolve()  # it may be a link to where the user keeps it
        partial = source.with_name(f"{source.name}.cockpit")
        partial.touch(mode=0o600)
        partial.write_bytes(content)
        partial.replace(source)
