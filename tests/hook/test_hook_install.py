"""Our hooks in an agent's settings: shown first, put in once, taken out whole; others' stay."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hook_world import Project
from state_for_tests import state_of

from cockpit.hook import install_hooks
from cockpit.hook.install_hooks import SettingsInvalid, load, with_ours

EVENTS = {
    *("SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse"),
    *("PermissionRequest", "PostToolUse", "PreCompact", "Stop"),
}
FILES = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json"}
THEIRS: dict[str, Any] = {
    "model": "opus",
    "permissions": {"allow": ["Bash(npm test:*)"]},
    "hooks": {
        "PostToolUse": [
            {"matcher": "Write", "hooks": [{"type": "command", "command": "prettier --write"}]}
        ],
        "Notification": [{"hooks": [{"type": "command", "command": "say cockpit hook"}]}],
    },
    "größe": "ü",
}


def text(body: Any, indent: int | str = 4) -> str:
    return json.dumps(body, indent=indent, ensure_ascii=False) + "\n"


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def handlers(body: Any) -> list[tuple[str, dict[str, Any]]]:
    """(event, handler) of everything."""
    return [
        (event, handler)
        for event, groups in body["hooks"].items()
        for group in groups
        for handler in group["hooks"]
    ]


def test_each_scope_has_a_file_of_its_own(bare: Project) -> None:
    bare.extra["CODEX_HOME"] = str(bare.root.parent / "codex")
    for words in (("claude", "--user"), ("codex", "--user"), ("claude", "--local")):
        # A hook makes no store, so what is installed for one project makes it.
        assert not (state_of(bare.root) / "cockpit.db").exists()
        bare.cockpit("hook", "install", *words, "--yes")
    assert (state_of(bare.root) / "cockpit.db").exists()
    assert (bare.root / ".claude" / "settings.local.json").exists()
    assert not (bare.root / ".claude" / "settings.json").exists()
    assert (bare.root.parent / "codex" / "hooks.json").exists()
    done = bare.cockpit("hook", "install", "codex", "--local", "--yes", expect=2)
    assert "use --user" in done.stderr
    status = json.loads(bare.cockpit("debug", "show", "hooks", "--json").stdout)
    there = {(one["agent"], one["scope"]) for one in status["installed"] if one["events"]}
    assert there == {("claude", "local"), ("claude", "user"), ("codex", "user")}
    assert (status["waiting"], status["left_behind"], status["log"]) == (0, 0, [])


def test_old_ways_to_call_it_are_replaced(bare: Project) -> None:
    path = bare.root / FILES["claude"]
    path.parent.mkdir()
    old = {"type": "command", "command": "/opt/old/bin/cockpit hook"}
    mixed = [{"matcher": "*", "hooks": [old, {"type": "command", "command": "other"}]}]
    path.write_text(text({"hooks": {"Stop": mixed, "Gone": [{"hooks": [old]}]}}), encoding="utf-8")
    bare.cockpit("hook", "install", "claude", "--yes")
    commands = [handler["command"] for _, handler in handlers(read(path))]
    assert old["command"] not in commands
    assert "other" in commands
    assert "Gone" not in read(path)["hooks"]


def test_a_change_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}", encoding="utf-8")
    settings = load("claude", path)
    path.write_text('{"a": 1}', encoding="utf-8")
    with pytest.raises(SettingsInvalid, match="changed meanwhile"):
        install_hooks.write(settings, with_ours(settings, "cockpit"))
    assert path.read_text(encoding="utf-8") == '{"a": 1}'


@pytest.mark.parametrize("agent", FILES)
def test_a_new_file_has_ours_and_goes_with_them(bare: Project, agent: str) -> None:
    path = bare.root / FILES[agent]
    done = bare.cockpit("hook", "install", agent, expect=2)
    assert '+    "SessionStart": [' in done.stdout and "Pass --yes" in done.stderr
    assert not path.exists()
    done = bare.cockpit("hook", "install", agent, "--yes")
    assert f"+++ {path}" in done.stdout
    found = handlers(read(path))
    failure = {"PostToolUseFailure"} if agent == "claude" else set()
    assert {event for event, _ in found} == EVENTS | failure
    for _, handler in found:
        program, *words = shlex.split(handler["command"])
        assert (Path(program).name, words) == ("cockpit", ["hook", "--agent", agent])
        assert handler["type"] == "command" and handler["timeout"] > 0
    before = path.read_bytes()
    assert "up to date" in bare.cockpit("hook", "install", agent, "--yes").stderr
    assert path.read_bytes() == before
    bare.cockpit("hook", "install", "--remove", agent, "--yes")
    assert not path.exists()
    assert (
        "has no hooks of cockpit"
        in bare.cockpit("hook", "install", "--remove", agent, "--yes").stderr
    )


@pytest.mark.parametrize(("agent", "indent"), [("claude", 2), ("codex", "\t")])
def test_what_others_have_there_stays(bare: Project, agent: str, indent: int | str) -> None:
    path = bare.root / FILES[agent]
    path.parent.mkdir()
    path.write_text(text(THEIRS, indent), encoding="utf-8")
    path.chmod(0o640)
    bare.cockpit("hook", "install", agent, "--yes")
    after = read(path)
    assert after["hooks"]["PostToolUse"][0] == THEIRS["hooks"]["PostToolUse"][0]
    assert after["hooks"]["Notification"] == THEIRS["hooks"]["Notification"]
    assert {**after, "hooks": None} == {**THEIRS, "hooks": None}
    assert list(after) == list(THEIRS)
    backup = install_hooks.backup_of(path)
    assert backup.read_text(encoding="utf-8") == text(THEIRS, indent)
    bare.cockpit("hook", "install", "--remove", agent, "--yes")
    assert path.read_text(encoding="utf-8") == text(THEIRS, indent)
    assert path.stat().st_mode & 0o777 == 0o640
    assert not backup.exists()


BROKEN = ("{", '{"hooks": {} // mine\n}', "[]", '{"hooks": []}', '{"hooks": {"Stop": 1}}')


def test_what_cannot_be_read_is_left_alone_and_hides_no_other(bare: Project) -> None:
    bare.cockpit("hook", "install", "codex", "--yes")
    path = bare.root / FILES["claude"]
    path.parent.mkdir()
    for before in BROKEN:
        path.write_text(before, encoding="utf-8")
        done = bare.cockpit("hook", "install", "claude", "--yes", expect=2)
        assert "settings.json" in done.stderr
        assert path.read_text(encoding="utf-8") == before
    path.write_text("no json", encoding="utf-8")
    told = json.loads(bare.cockpit("debug", "show", "hooks", "--json").stdout)["installed"]
    found = {(one["agent"], one["scope"]): one for one in told}
    assert "is not JSON" in found["claude", "project"]["error"]
    assert "PostToolUse" in found["codex", "project"]["events"]
    assert "is not JSON" in bare.cockpit("debug", "show", "hooks").stderr


def test_a_link_is_followed_for_the_user_and_not_out_of_the_project(bare: Project) -> None:
    mine = bare.root.parent / "mine"
    mine.mkdir()
    (bare.root / ".claude").symlink_to(mine)
    done = bare.cockpit("hook", "install", "claude", "--yes", expect=2)
    assert "out of the project" in done.stderr
    assert list(mine.iterdir()) == []
    dotfiles = bare.root.parent / "dotfiles.json"
    dotfiles.write_text("{}\n", encoding="utf-8")
    folder = Path(bare.env["HOME"]) / ".claude"
    folder.mkdir()
    (folder / "settings.json").symlink_to(dotfiles)
    bare.cockpit("hook", "install", "claude", "--user", "--yes")
    assert (folder / "settings.json").is_symlink()
    assert "hooks" in read(dotfiles)


def test_undone_it_is_to_the_letter_what_it_was(bare: Project) -> None:
    path = bare.root / FILES["codex"]
    path.parent.mkdir()
    for text in ('{"hooks":{}}', '{"a": [1, 2], "hooks": {"Stop": []}}', ""):
        path.write_text(text, encoding="utf-8")
        bare.cockpit("hook", "install", "codex", "--yes")
        assert path.read_text(encoding="utf-8") != text
        bare.cockpit("hook", "install", "--remove", "codex", "--yes")
        assert path.read_text(encoding="utf-8") == text
        assert [one.name for one in path.parent.iterdir()] == ["hooks.json"]


def test_installing_with_approval_waits_longer(bare: Project) -> None:
    done = bare.cockpit("hook", "install", "claude", "--approve", "--yes")
    assert "--approve" in done.stdout
    body = read(bare.root / FILES["claude"])
    times = {event: handler["timeout"] for event, handler in handlers(body)}
    assert (times["PermissionRequest"], times["Stop"]) == (900, 15)
    assert "statusMessage" not in json.dumps(body), "its own dialog is open meanwhile"
    bare.cockpit("hook", "install", "codex", "--approve", "--yes")
    handler = dict(handlers(read(bare.root / FILES["codex"])))["PermissionRequest"]
    assert handler["statusMessage"] == "answer in cockpit, or press Esc"
    bare.cockpit("hook", "install", "claude", "--yes")
    assert "--approve" not in (bare.root / FILES["claude"]).read_text(encoding="utf-8")
