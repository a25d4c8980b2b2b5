"""What is loaded when, proved in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from cockpit.decide.load_sdk import warm

pytestmark = pytest.mark.slow

HEAVY = ("pydantic_ai", "anthropic", "openai", "pydantic", "httpx2", "textual", "numpy")


HEAVY_NOW = f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]), flush=True)\n"
CHOOSE = "from cockpit.decide.choose_model import ModelSettings, choose_model\n"
WARMING = "from cockpit.decide.load_sdk import warm\n"

FORKING = """
import json, os, sys
import pydantic_ai.direct
import cockpit.decide.load_sdk

for line in sys.stdin:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(writer, 1)
            exec(json.loads(line), {"__name__": "__main__"})
            sys.stdout.flush()
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader) as printed:
        text = printed.read()
    assert os.waitpid(pid, 0)[1] == 0, text
    print(json.dumps(text), flush=True)
"""
"""Runs each line's code in a process that has what both SDKs need, and neither of them."""


class Forking:
    """A process that has loaded what takes a second, and forks one for each piece of code."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, code: str) -> str:
        """Run ``code`` in a process of its own; return what it printed."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(f"import json, sys\n{code}") + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the code has failed; its error is on stderr"
        printed: str = json.loads(answer)
        return printed


@pytest.fixture(scope="module")
def forking() -> Iterator[Forking]:
    with subprocess.Popen(
        [sys.executable, "-c", FORKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Forking(process)


@pytest.fixture(scope="module")
def heavy_after(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What one process that began with nothing has loaded after each choice, one after the other."""
    script = tmp_path_factory.mktemp("script") / "s.toml"
    script.write_text('[[turn]]\ntext = "x"\n')
    steps = {
        "import": CHOOSE,
        "offline": chosen("offline"),
        "script": chosen(f"script:{script}"),
        "anthropic": chosen("anthropic", '{"ANTHROPIC_API_KEY": "k"}'),
    }
    code = "import json, sys\n" + "".join(step + HEAVY_NOW for step in steps.values())
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return dict(zip(steps, map(json.loads, out.stdout.splitlines()), strict=True))


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


def sdks_asked_for(forking: Forking, code: str) -> list[str]:
    """Run ``code`` to the first import of an SDK; return the names of the SDKs that were imported."""
    return forking.run(ASKED_FOR + code).split()


def chosen(spec: str, env: str = "{}") -> str:
    return f"{CHOOSE}choose_model({spec!r}, config=ModelSettings(), env={env})\n"


def test_choosing_loads_no_sdk(heavy_after: dict[str, list[str]]) -> None:
    assert heavy_after["import"] == heavy_after["script"] == heavy_after["anthropic"] == []


def test_choosing_offline_loads_no_sdk(heavy_after: dict[str, list[str]]) -> None:
    assert heavy_after["offline"] == []


@pytest.mark.parametrize(
    ("name", "present", "absent"),
    [
        ("anthropic:claude-x", "anthropic", "openai"),
        ("openai:gpt-x", "openai", "anthropic"),
    ],
)
def test_warming_loads_what_the_model_needs_and_no_more(
    forking: Forking, name: str, present: str, absent: str
) -> None:
    before = json.loads(forking.run(HEAVY_NOW))
    assert present not in before and absent not in before
    modules = json.loads(forking.run(f"{WARMING}warm({name!r}).join()\n{HEAVY_NOW}"))
    assert present in modules
    assert absent not in modules
    assert "textual" not in modules


def test_a_server_of_ones_own_needs_the_same_sdk(forking: Forking) -> None:
    code = f"{WARMING}warm('openai-compatible:q@http://h/v1').join()\n"
    assert sdks_asked_for(forking, code) == ["openai"]


@pytest.mark.parametrize("name", ["offline", "script:s.toml", ""])
def test_there_is_nothing_to_warm_for_our_own_models(name: str) -> None:
    assert warm(name) is None


def test_a_screen_loads_the_sdk_when_its_user_writes(forking: Forking) -> None:
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
    assert sdks_asked_for(forking, waits + writes) == ["nothing", "yet", "anthropic"]
