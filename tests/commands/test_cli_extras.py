"""cockpit without the SDKs of providers: what works, what the user reads, and how one is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from sysconfig import get_path

import pytest

from cockpit.decide.provider_extras import Installation, install_command

pytestmark = pytest.mark.slow

SDKS = ("anthropic", "openai", "pydantic_ai", "nats", "opentelemetry", "onnxruntime")
ROOT = Path(__file__).resolve().parents[2]
KEY = {"ANTHROPIC_API_KEY": "sk-test-1234567890"}


class Bare:
    """An environment with every installed package but those of extras. Its pip writes down how it was called,
    and installs by linking."""

    def __init__(self, folder: Path) -> None:
        self.packages = folder / "packages"
        self.packages.mkdir()
        for entry in Path(get_path("purelib")).iterdir():
            ours = entry.name.startswith("cockpit-") or entry.suffix == ".pth"
            if entry.name not in (*SDKS, "pip") and not ours:
                (self.packages / entry.name).symlink_to(entry)
        self.calls = folder / "calls.json"
        self.project = folder / "project"
        self.project.mkdir()
        (self.packages / "pip").mkdir()
        (self.packages / "pip" / "__init__.py").touch()
        (self.packages / "pip" / "__main__.py").write_text(
            "import json, os, pathlib, sys\n"
            f"pathlib.Path({str(self.calls)!r}).write_text(json.dumps(sys.argv[1:]))\n"
            "if 'PIP_BREAKS' in os.environ:\n"
            "    sys.exit('ERROR: no such index')\n"
            "for name in ('anthropic', 'pydantic_ai'):\n"
            f"    os.symlink({get_path('purelib')!r} + '/' + name, {str(self.packages)!r} + '/' + name)\n"
        )

    def run(self, *words: str, expect: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        variables = {
            **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")},
            "PYTHONPATH": f"{self.packages}{os.pathsep}{ROOT}",
            "HOME": str(self.project),
            "COCKPIT_CONFIG_DIR": str(self.project / "none"),
            **env,
        }
        # -S: without the environment that the tests run in.
        done = subprocess.run(
            [sys.executable, "-S", "-m", "cockpit", *words],
            cwd=self.project, env=variables, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == expect, done.stdout + done.stderr
        return done

    def checks(self, expect: int = 0, **env: str) -> dict[str, dict[str, str]]:
        done = self.run("doctor", "--json", expect=expect, **env)
        return {check["name"]: check for check in json.loads(done.stdout)}


def test_doctor_names_and_installs_what_is_missing(tmp_path: Path) -> None:
    bare = Bare(tmp_path)
    done = bare.run("run", "Look", "--approve", "all", expect=2, **KEY)
    for text in ("anthropic:claude", "extra 'anthropic'", "cockpit doctor --install anthropic"):
        assert text in done.stderr
    (tmp_path / "config.toml").write_text(
        '[telemetry]\notlp_endpoint = "http://u:pw@127.0.0.1:4318"\n'
        '[scale]\nserver = "nats://127.0.0.1:4222/shop"\ngit = "origin"\n',
        encoding="utf-8",
    )
    checks = bare.checks(expect=1, COCKPIT_CONFIG_DIR=str(tmp_path), **KEY)
    assert (checks["model"]["state"], checks["extra openai"]["state"]) == ("broken", "missing")
    assert "--install openai" in checks["extra openai"]["mend"]
    assert {checks[f"extra {name}"]["state"] for name in ("otel", "nats")} == {"broken"}
    assert "pw@" not in json.dumps(checks)
    broken = bare.run("doctor", "--install", "anthropic", "--yes", expect=1, PIP_BREAKS="1")
    assert "ERROR: no such index" in broken.stderr
    assert not (bare.packages / "anthropic").exists()
    bare.run("doctor", "--install", "anthropic", "--yes")
    package = "pydantic-ai-slim[anthropic]>=2.60,<3"
    assert json.loads(bare.calls.read_text()) == ["install", package]


PIP = "pydantic-ai-slim[openai]>=2.60,<3"
ALL = "anthropic,nats,openai,otel,vector"
PINS = f"--constraint {ROOT}/constraints.txt"


@pytest.mark.parametrize(
    ("marker", "source", "editable", "expected"),
    [
        ("", "", False, f"/e/bin/python -m pip install {PIP}"),
        ("", ROOT.as_uri(), True, f"/e/bin/python -m pip install {PINS} {PIP}"),
        ("uv-receipt.toml", "", False, f"uv tool install cockpit[{ALL}]"),
        (
            "uv-receipt.toml",
            "file:///a%20b",
            False,
            f"uv tool install cockpit[{ALL}] @ file:///a%20b",
        ),
        ("uv-receipt.toml", "file:///a", True, f"uv tool install --editable /a[{ALL}]"),
        ("pipx_metadata.json", "file:///a", False, f"pipx inject cockpit {PIP}"),
    ],
)
def test_an_extra_is_installed_as_cockpit_was(
    tmp_path: Path, marker: str, source: str, editable: bool, expected: str
) -> None:
    prefix = tmp_path / "cockpit"
    prefix.mkdir()
    if marker:
        (prefix / marker).touch()
    where = Installation(prefix, "/e/bin/python", source, editable)
    assert " ".join(install_command("openai", where)) == expected


def test_an_environment_of_uv_needs_no_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "uv").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    where = Installation(tmp_path, "/e/bin/python", has_pip=False)
    package = "pydantic-ai-slim[anthropic,openai]>=2.60,<3"
    command = ("uv", "pip", "install", "--python", "/e/bin/python", package)
    assert install_command("all", where) == command
