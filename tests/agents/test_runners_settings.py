"""``[runner.NAME]``: the person's own, and nobody else's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cockpit.agents.runs.agent_command_line import PLACEHOLDERS, placeholders_in
from cockpit.commands.chains.work_on_task import check_runner
from cockpit.commands.open_project import WrongUse
from cockpit.commands.setup.doctor_checks import every_check
from cockpit.config.load_settings import ConfigInvalid, load_settings
from cockpit.core.project_paths import ProjectPaths
from cockpit.decide.choose_model import choose_model
from cockpit.decide.model import ModelError
from cockpit.decide.model_settings import ModelSettings
from cockpit.loop.runtime_settings import RunnerSettings


def written(folder: Path, text: str) -> dict[str, str]:
    (folder / "config.toml").write_text(text, encoding="utf-8")
    return {"COCKPIT_CONFIG_DIR": str(folder)}


def test_a_runner_is_read_with_what_it_does_not_say_filled_in(tmp_path: Path) -> None:
    env = written(
        tmp_path,
        '[runner.claude]\ncommand = ["claude", "-p"]\nformat = "claude"\n'
        'env = ["ANTHROPIC_API_KEY"]\n[runner.mine]\ncommand = ["/opt/agent", "{prompt}"]\n'
        "timeout_s = 60\n",
    )
    settings = load_settings(None, env=env)
    assert settings.runtime.runners == {
        "claude": RunnerSettings("claude", ("claude", "-p"), "claude", ("ANTHROPIC_API_KEY",)),
        "mine": RunnerSettings("mine", ("/opt/agent", "{prompt}"), timeout_s=60.0),
    }
    assert settings.origins["[runner.mine]"] == str(tmp_path / "config.toml")


def test_a_repository_may_not_name_programs(tmp_path: Path) -> None:
    project = tmp_path / ".cockpit"
    project.mkdir()
    (project / "config.toml").write_text('[runner.x]\ncommand = ["sh"]\n', encoding="utf-8")
    with pytest.raises(ConfigInvalid, match="may not name programs"):
        load_settings(project, env={"COCKPIT_CONFIG_DIR": str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[runner.a]\n", "command"),
        ('[runner.a]\ncommand = ["./run.sh"]\n', "absolute path"),
        ('[runner.a]\ncommand = ["{prompt}"]\n', "begin it with a program"),
        ('[runner.a]\ncommand = ["a", "{promt}"]\n', "placeholders are {prompt}"),
        ('[runner.a]\ncommand = ["a"]\nenv = ["KEY=1"]\n', "names of variables"),
        ('[runner.a]\ncommand = ["a"]\ntimeout_s = 0\n', "timeout_s"),
        ('[runner.a]\ncommand = ["a"]\nprotocol = "app-server"\n', "protocol"),
        ('[runner.embedded]\ncommand = ["a"]\n', "not 'embedded'"),
        ('[runner."A B"]\ncommand = ["a"]\n', "lower-case letters"),
    ],
)
def test_what_a_runner_cannot_be_is_told(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigInvalid, match=said):
        load_settings(None, env=written(tmp_path, text))


def test_a_session_of_an_agent_is_not_gone_on_with_by_a_model() -> None:
    with pytest.raises(ModelError, match="Start a new session"):
        choose_model("runner:claude", config=ModelSettings(), env={})


async def test_doctor_tells_of_a_runner_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        '[runner.gone]\ncommand = ["no-such-agent"]\n[runner.keyless]\ncommand = ["git"]\n'
        'env = ["NO_SUCH_KEY"]\n[runner.there]\ncommand = ["git"]\n'
    )
    for name, value in written(tmp_path, text).items():
        monkeypatch.setenv(name, value)
    checks = await every_check(ProjectPaths(root=tmp_path, home=tmp_path, git=False))
    found = {one.name: one for one in checks if one.name.startswith("runner ")}
    assert {name: one.state for name, one in found.items()} == {
        "runner gone": "missing",
        "runner keyless": "missing",
        "runner there": "ok",
    }
    assert "NO_SUCH_KEY is not set" in found["runner keyless"].detail


def test_work_does_not_begin_without_the_program_of_its_runner(tmp_path: Path) -> None:
    env = written(tmp_path, '[runner.gone]\ncommand = ["no-such-agent"]\n')
    with pytest.raises(WrongUse, match=r"no-such-agent, .* is not installed.*\[runner.gone\]"):
        check_runner(load_settings(None, env=env), "gone")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "codex.toml").write_text(
        'title = "Codex"\n[acp]\ncommand = ["no-such-adapter"]\n', encoding="utf-8"
    )
    with pytest.raises(WrongUse, match=r"no-such-adapter, .*runner codex, .*`cockpit agents`"):
        check_runner(load_settings(None, env=env), "codex")


def test_the_recipes_of_the_documents_are_settings(tmp_path: Path) -> None:
    docs = Path(__file__).parents[2] / "docs"
    names = (
        "how-to/claude-code.md", "how-to/codex.md", "how-to/any-agent.md", "reference/agents.md",
    )  # fmt: skip
    page = "".join((docs / name).read_text(encoding="utf-8") for name in names)
    blocks = re.findall(r"```toml[^\n]*\n(\[runner\..*?)```", page, re.DOTALL)
    env = written(tmp_path, "".join(blocks))
    runners = load_settings(None, env=env).runtime.runners
    assert set(runners) == {"claude", "mine"}
    assert placeholders_in(runners["claude"]) == {"mcp_config", "hooks", "answer_schema"}
    assert placeholders_in(runners["mine"]) == {"task", "prompt_file"}
    assert all(f"`{{{name}}}`" in page for name in PLACEHOLDERS)
