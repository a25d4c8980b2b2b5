"""What a named script loads in turn is pinned too, and a change of it is refused before anything runs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from cockpit.access.confined_paths import Confined
from cockpit.act.adapters.run_command import CommandAdapter
from cockpit.act.named_scripts import MOST_FILES, find_scripts, why_changed
from cockpit.act.preview_command import preview_run
from cockpit.act.tool_payloads import Run
from cockpit.act.workspace import open_workspace

Files = Mapping[str, str]
CLOSURES: list[tuple[str, Files, list[str]]] = [
    ("sh a.sh", {"a.sh": ". ./lib.sh\n", "lib.sh": "source more.sh\n", "more.sh": "x=1\n"},
     ["lib.sh", "more.sh"]),
    ("bash s/a.sh", {"s/a.sh": 'source "$(dirname "$0")/lib.sh"\n', "s/lib.sh": "x=1\n"},
     ["s/lib.sh"]),
    ("bash s/a.sh", {"s/a.sh": '. "${BASH_SOURCE%/*}/lib.sh"\n', "s/lib.sh": "x=1\n"}, ["s/lib.sh"]),
    ("bash a.sh", {"a.sh": 'DIR=s\n. "$DIR/lib.sh"\n./tool\n', "tool": "#!/bin/sh\nsh t.sh\n",
                   "t.sh": "x\n"}, ["tool", "t.sh"]),
    ("sh -c 'cd s && sh a.sh'", {"s/a.sh": "if true; then python t.py; fi\n", "s/t.py": "x = 1\n"},
     ["s/t.py"]),
    ("make", {"Makefile": "include rules.mk\n-include x/y.mk\nall:\n\t@sh build.sh\n",
              "rules.mk": "PY ?= python3\nsub:\n\t$(PY) tool.py\n", "x/y.mk": "z:\n\t./run.sh\n",
              "run.sh": "echo\n", "build.sh": "echo\n", "tool.py": "import lib\n", "lib.py": ""},
     ["rules.mk", "x/y.mk", "run.sh", "build.sh", "tool.py", "lib.py"]),
    ("make", {"Makefile": "PY := python3\nV := $(shell ./version.sh)\nall:\n\t$(PY) tool.py\n"
              "\t$(MAKE) -C sub\n", "version.sh": "", "tool.py": "", "sub/Makefile": "a:\n\tsh x.sh\n",
              "sub/x.sh": ""}, ["version.sh", "tool.py", "sub/Makefile", "sub/x.sh"]),
    ("npm test", {"package.json": '{"scripts": {"pretest": "node pre.js", "test": "npm run unit",'
                  ' "unit": "sh unit.sh", "other": "sh other.sh"}}', "pre.js": "require('./lib')\n",
                  "lib.js": "", "unit.sh": "", "other.sh": ""}, ["pre.js", "unit.sh", "lib.js"]),
    ("npm run a", {"package.json": '{"scripts": {"a": "npm run b", "b": "npm run a && sh x.sh"}}',
                   "x.sh": ""}, ["x.sh"]),
    ("node a.js", {"a.js": "import x from './b.mjs'\nconst y = require('../shop/c')\nexport * from './d'\n",
                   "b.mjs": "await import('./e.js')\n", "c.ts": "", "d/index.js": "", "e.js": ""},
     ["b.mjs", "d/index.js", "e.js"]),
    ("python tool.py", {"tool.py": "import json, lib.inner\nfrom lib import other\nfrom . import x\n",
                        "lib/__init__.py": "from .deep import *\n", "lib/inner.py": "",
                        "lib/other.py": "", "lib/deep.py": "", "x.py": ""},
     ["lib/__init__.py", "lib/inner.py", "lib/other.py", "lib/deep.py", "x.py"]),
    ("python -m pkg", {"pkg/__init__.py": "", "pkg/__main__.py": "from pkg import core\n",
                       "pkg/core.py": ""}, ["pkg/core.py"]),
    ("python -m pkg.tool", {"pkg/__init__.py": "import own\n", "pkg/tool.py": "", "own.py": ""},
     ["own.py"]),
    ("pytest -q", {"conftest.py": "import helper\n", "helper.py": "", "tests/conftest.py": "",
                   "tests/unit/conftest.py": "", "node_modules/x/conftest.py": "",
                   "pyproject.toml": "[tool]\n"}, ["helper.py"]),
    ("pytest tests/unit/test_a.py::test_b", {"tests/conftest.py": "", "tests/unit/conftest.py": "",
     "tests/other/conftest.py": "", "tests/unit/test_a.py": "from tests import helper\n",
     "tests/helper.py": ""}, ["tests/helper.py"]),
    ("sh a.sh", {"a.sh": "$PYTHON tool.py\n", "tool.py": "import lib\n", "lib.py": ""},
     ["tool.py", "lib.py"]),
    ("ruby a.rb", {"a.rb": "require_relative 'lib/b'\n", "lib/b.rb": ""}, ["lib/b.rb"]),
    ("just", {"justfile": "import 'more.just'\na:\n    sh x.sh\n", "more.just": "", "x.sh": ""},
     ["more.just", "x.sh"]),
]  # fmt: skip
NAMED: dict[str, list[str]] = {
    "python -m pkg": ["pkg/__init__.py", "pkg/__main__.py"],
    "python -m pkg.tool": ["pkg/__init__.py", "pkg/tool.py"],
    "pytest -q": ["conftest.py", "tests/conftest.py", "tests/unit/conftest.py", "pyproject.toml"],
    "pytest tests/unit/test_a.py::test_b": [
        "tests/unit/test_a.py", "tests/unit/conftest.py", "tests/conftest.py",
    ],
}  # fmt: skip


def fill(root: Path, files: Files) -> Path:
    root = root / "shop"
    root.mkdir()
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
        (root / name).chmod(0o755)
    return root


@pytest.mark.parametrize(("line", "files", "loaded"), CLOSURES, ids=lambda value: str(value)[:40])
def test_what_a_script_loads_is_pinned(tmp_path, line, files, loaded):
    confined = Confined(fill(tmp_path, files))
    scripts = find_scripts(shlex.split(line), confined)
    assert sorted(script.path for script in scripts.loaded) == sorted(loaded)
    if line in NAMED:
        assert sorted(script.path for script in scripts.present) == sorted(NAMED[line])
    pins = scripts.pins()
    assert why_changed(pins, confined) == ""
    for name in loaded:
        assert name in scripts.body()
        file = confined.root / name
        before = file.read_text(encoding="utf-8")
        file.write_text(f"{before}\n# another\n", encoding="utf-8")
        assert f"{name}, which this command runs, has changed" in why_changed(pins, confined)
        file.unlink()
        assert "is gone since it was shown" in why_changed(pins, confined)
        file.write_text(before, encoding="utf-8")


APPEARS: list[tuple[str, Files, str]] = [
    ("pytest -q", {"a.py": ""}, "conftest.py"),
    ("pytest -q", {"a.py": ""}, "pytest.ini"),
    ("python -m json.tool x", {"x": ""}, "json.py"),
    ("python -m pytest", {"x": ""}, "pytest.py"),
    ("python tool.py", {"tool.py": "import json\n"}, "json.py"),
    ("python tool.py", {"tool.py": "import lib\n", "lib.py": ""}, "lib/__init__.py"),
    ("node a.js", {"a.js": "require('./b')\n", "b.mjs": ""}, "b.js"),
    ("sh a.sh", {"a.sh": "[ -f local.sh ] && . ./local.sh\n"}, "local.sh"),
    ("make", {"Makefile": "-include local.mk\n"}, "local.mk"),
]


@pytest.mark.parametrize(("line", "files", "name"), APPEARS, ids=lambda value: str(value)[:40])
def test_a_file_that_would_be_loaded_if_it_appeared_is_refused(tmp_path, line, files, name):
    confined = Confined(fill(tmp_path, files))
    pins = find_scripts(shlex.split(line), confined).pins()
    assert why_changed(pins, confined) == ""
    (confined.root / name).parent.mkdir(exist_ok=True)
    (confined.root / name).write_text("x\n", encoding="utf-8")
    assert "was not there when it was shown" in why_changed(pins, confined)


OPEN: list[tuple[str, Files, str]] = [
    ("sh a.sh", {"a.sh": '. "$HOOK"\n'}, "$HOOK in a.sh"),
    ("sh a.sh", {"a.sh": "$PYTHON tool.py\n", "tool.py": ""}, "$PYTHON in a.sh"),
    ("make", {"Makefile": "a:\n\t$(X) tool.py\n", "tool.py": ""}, "$(X) in Makefile"),
    ("python a.py", {"a.py": "import importlib\nimportlib.import_module(x)\n"}, "import_module(…) in a.py"),
    ("python a.py", {"a.py": "def (\n"}, "the imports of a.py"),
    ("node a.js", {"a.js": "require(name)\n"}, "require in a.js"),
    ("node a.js", {"a.js": "require('child_process').execSync(x)\n"}, "child_process in a.js"),
    ("npm test", {"package.json": "{"}, "the scripts of package.json"),
    ("./tool", {"tool": "some text\n"}, "what tool loads"),
    ("sh a.sh", {"a.sh": "\0\n. ./lib.sh\n"}, "what a.sh loads (it is not text)"),
    ("pytest -q", {"a.py": ""}, "the tests that pytest collects"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "files", "words"), OPEN, ids=lambda value: str(value)[:40])
async def test_what_cannot_be_followed_is_said_in_the_proposal(tmp_path, line, files, words):
    ground = await open_workspace(fill(tmp_path, files))
    preview = preview_run(Run(tuple(shlex.split(line)), "because", 60), ground)
    note = next(note for note in preview.notes if note.startswith("Not followed"))
    assert words in note


async def test_a_changed_library_of_a_script_stops_it(tmp_path: Path) -> None:
    """Shown, approved, and the library swapped: nothing runs."""
    files = {"build.sh": ". ./lib.sh\nwork\n", "lib.sh": "work() { echo shown; }\n"}
    ground = await open_workspace(fill(tmp_path, files))
    preview = preview_run(Run(("sh", "build.sh"), "because", 60), ground)
    assert "lib.sh" in preview.body
    (ground.root / "lib.sh").write_text("work() { touch ran; }\n", encoding="utf-8")
    outcome = await CommandAdapter().perform(preview.payload, "key", ground)
    assert outcome.status == "failure"
    assert "lib.sh, which this command runs, has changed since it was shown" in outcome.summary
    assert not (ground.root / "ran").exists()


def test_the_closure_is_bounded_and_says_so(tmp_path: Path) -> None:
    files = {f"m{n}.py": f"import m{n + 1}\n" for n in range(MOST_FILES + 30)}
    scripts = find_scripts(("python", "m0.py"), Confined(fill(tmp_path, files)))
    assert len(scripts.present) + len(scripts.loaded) == MOST_FILES
    assert f"more than {MOST_FILES} files" in scripts.unknown


def test_links_out_of_the_project_and_secrets_are_not_shown(tmp_path: Path) -> None:
    token = "ghp_" + "aB3dE5gH" * 5
    root = fill(tmp_path, {"a.sh": ". ./away.sh\n. ./lib.sh\n", "lib.sh": f"T={token}\n"})
    (tmp_path / "outside.sh").write_text("x\n", encoding="utf-8")
    (root / "away.sh").symlink_to(tmp_path / "outside.sh")
    scripts = find_scripts(("sh", "a.sh"), Confined(root))
    assert [script.path for script in scripts.loaded] == ["lib.sh"]
    assert "away.sh" in scripts.missing and token not in scripts.body()


@pytest.mark.parametrize("argv", [
    ("python", "-m", "x" * 5_000), ("pytest", "x" * 5_000), ("sh", "x" * 5_000), ("pytest", "a\0b"),
    ("python", "-m", "a..b"), ("python", "-m", ".."), ("python", "-m"), ("make", "-C", ".."), ("node", "."),
], ids=lambda argv: " ".join(argv)[:20].replace("\0", "-"))  # fmt: skip
def test_names_that_no_file_can_have_end_nothing(tmp_path: Path, argv: tuple[str, ...]) -> None:
    assert find_scripts(argv, Confined(fill(tmp_path, {}))).present == ()
