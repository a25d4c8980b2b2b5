"""What is loaded when, proved in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cockpit.decide.load_sdk import warm

pytestmark = pytest.mark.slow

HEAVY = ("pydantic_ai", "anthropic", "openai", "pydantic", "httpx2", "textual", "numpy")


def loaded(code: str) -> list[str]:
    report = f"\nimport json, sys\nprint(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))\n"
    out = subprocess.run(
        [sys.executable, "-c", code + report], capture_output=True, text=True, check=True
    )
    names: list[str] = json.loads(out.stdout)
    return names


ASKED_FOR = """
import importlib.machinery
import sys

class Stops:
    "Notes which SDK is asked for, and spares the seconds that it takes to load."

    def find_spec(self, name, path=None, target=None):
        if name in ("anthropic", "openai"):
            return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        print(module.__name__, flush=True)
        raise ImportError(module.__name__)

sys.meta_path.insert(0, Stops())
"""


def sdks_asked_for(code: str) -> list[str]:
    """Run ``code`` to the first import of an SDK; return the names of the SDKs that were imported."""
    out = subprocess.run(
        [sys.executable, "-c", ASKED_FOR + code], capture_output=True, text=True, check=True
    )
    return out.stdout.split()


CHOOSE = "from cockpit.decide.choose_model import ModelSettings, choose_model\n"


def chosen(spec: str, env: str = "{}") -> str:
    return f"{CHOOSE}choose_model({spec!r}, config=ModelSettings(), env={env})\n"


def test_choosing_loads_no_sdk(tmp_path: Path) -> None:
    script = tmp_path / "s.toml"
    script.write_text('[[turn]]\ntext = "x"\n')
    assert loaded(CHOOSE) == []
    assert loaded(chosen(f"script:{script}")) == []
    assert loaded(chosen("anthropic", '{"ANTHROPIC_API_KEY": "k"}')) == []


def test_choosing_offline_loads_no_sdk() -> None:
    assert loaded(chosen("offline")) == []


@pytest.mark.parametrize(
    ("name", "present", "absent"),
    [
        ("anthropic:claude-x", "anthropic", "openai"),
        ("openai:gpt-x", "openai", "anthropic"),
    ],
)
def test_warming_loads_what_the_model_needs_and_no_more(
    name: str, present: str, absent: str
) -> None:
    modules = loaded(
        f"from cockpit.decide.load_sdk import warm\nthread = warm({name!r})\nthread.join()\n"
    )
    assert present in modules
    assert absent not in modules
    assert "textual" not in modules


def test_a_server_of_ones_own_needs_the_same_sdk() -> None:
    warming = "from cockpit.decide.load_sdk import warm\n"
    assert sdks_asked_for(f"{warming}warm('openai-compatible:q@http://h/v1').join()\n") == [
        "openai"
    ]


@pytest.mark.parametrize("name", ["offline", "script:s.toml", ""])
def test_there_is_nothing_to_warm_for_our_own_models(name: str) -> None:
    assert warm(name) is None


def test_a_screen_loads_the_sdk_when_its_user_writes() -> None:
    waits = (
        "import threading\n"
        "from cockpit.commands.sessions.screen import _Sdk\n"
        "sdk = _Sdk()\nsdk.load()\nsdk.name = 'anthropic:claude-x'\n"
        "print('nothing yet', flush=True)\n"
    )
    writes = (
        "sdk.load()\nsdk.load()\n"
        "[thread.join() for thread in threading.enumerate() if thread.name == 'model-warm']\n"
    )
    assert sdks_asked_for(waits + writes) == ["nothing", "yet", "anthropic"]
