"""Choosing a model loads no SDK; warming loads the one that the model needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cockpit.decide.load_sdk import warm

pytestmark = pytest.mark.slow

CODE = """
import importlib.machinery, sys, threading
from cockpit.decide.choose_model import ModelSettings, choose_model
from cockpit.decide.load_sdk import warm
from cockpit.decide.offline.offline_model import OfflineModel

for name in ("offline", "anthropic", "openai"):
    choose_model(name, config=ModelSettings(), env={"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"})
print(sorted({"pydantic_ai", "anthropic", "openai", "textual", "numpy"} & set(sys.modules)), flush=True)

class Stops:
    "Says which SDK is asked for, and spares the seconds that it takes to load."

    def find_spec(self, name, path=None, target=None):
        if name in ("anthropic", "openai"):
            return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        print(module.__name__, flush=True)
        raise ImportError(module.__name__)

sys.meta_path.insert(0, Stops())
from cockpit.commands.sessions.screen import _Sdk
warm("openai-compatible:q@http://h/v1").join()
sdk = _Sdk()
sdk.load()
sdk.name = "anthropic:claude-x"
print("the user writes", flush=True)
sdk.load()
sdk.load()
[thread.join() for thread in threading.enumerate() if thread.name == "model-warm"]
"""


def test_choosing_loads_no_sdk_and_warming_the_one_that_is_needed() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "openai", "the user writes", "anthropic"]
    for name in ("offline", "script:s.toml", ""):
        assert warm(name) is None
