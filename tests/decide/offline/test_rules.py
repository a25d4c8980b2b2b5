"""Each rule on a real commit with the defect planted, and on one without it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from copied_repository import copy_repository
from decide.offline.playing import reviewed
from loop.intake.repositories import Repo

pytestmark = pytest.mark.slow

APP = """\
\"\"\"The app.\"\"\"

LIMIT = 10


def load(path, mode):
    \"\"\"Read a file.\"\"\"
    with open(path, mode) as file:
        return file.read()


def tidy(text):
    return text.strip()


class Store:
    def put(self, key, value):
        return self.check(key)

    def check(self, key):
        return bool(key)
"""
USER = "from src.app import LIMIT, load, tidy\n\n\ndef go():\n    return tidy(load('b', 'r'))[:LIMIT]\n"
TEST = """\
from src.app import Store, load, tidy


def test_load(tmp_path):
    (tmp_path / "a").write_text("x")
    assert load(tmp_path / "a", "r") == "x"


def test_tidy():
    assert tidy(" a ") == "a"


def test_store():
    assert Store().put("a", 1)
"""


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(copy_repository(_make_work, tmp_path / "work"))


def _make_work(root: Path) -> None:
    made = Repo(root)
    made.commit(
        "Start",
        {
            "src/app.py": APP,
            "src/user.py": USER,
            "tests/test_app.py": TEST,
            "README.md": "Call `tidy` on text.\n",
            "web/a.js": "export function one(a) {\n  return a;\n}\n",
            "web/b.js": "import { one } from './a';\none(1);\n",
        },
    )


async def text_of(repo: Repo) -> str:
    return (await reviewed(repo.root, "/review-pr HEAD~1..HEAD")).review


def section(text: str, name: str) -> str:
    return text.partition(f"## {name}\n\n")[2].partition("\n\n## ")[0]


def app(old: str, new: str) -> str:
    assert old in APP
    return APP.replace(old, new)


def with_line(line: str) -> dict[str, str | bytes | None]:
    """The app with a line in the body of ``tidy``, and a test that goes with it."""
    body = "\n".join(f"    {part}" if part else "" for part in line.split("\n"))
    return {
        "src/app.py": app("    return text.strip()\n", f"{body}\n    return text.strip()\n"),
        "tests/test_app.py": TEST + "\n\ndef test_more():\n    assert tidy('') == ''\n",
    }


BLOCKING = [
    ("src/app.py:13", "A debugger stop was left in", with_line("breakpoint()")),
    ("src/app.py:13", "A conflict marker was committed: `<<<<<<<`", with_line("x = 1").copy()
     | {"src/app.py": app("    return text", "<<<<<<< ours\n    return text")}),
    ("src/app.py:13", "cannot parse this file", with_line("if text\n    pass")),
    ("src/app.py:13", "A github token is committed here", with_line(f'key = "ghp_{"a1B2" * 9}"')),
    ("src/app.py:13", "U+202E changes the order", with_line("x = 'a\u202eb'")),
    ("src/app.py:13", "asserts a tuple", with_line("assert (text, 'must not be empty')")),
    ("src/user.py:1", "`tidy` is gone from `src/app.py`, and is used here (also `src/user.py:5`)",
     {"src/app.py": app("def tidy(text):\n    return text.strip()\n\n\n", ""),
      "tests/test_app.py": TEST.replace("def test_tidy():\n    assert tidy(\" a \") == \"a\"\n\n\n", "")
      .replace(", tidy", "")}),
    ("src/user.py:5", "`load` now needs `encoding`, and this call does not fit",
     {"src/app.py": app("path, mode)", "path, mode, encoding)")}),
    ("src/app.py:9", "`tidy` now needs `side`, and this call does not fit",
     {"src/app.py": app("def tidy(text)", "def tidy(text, side)").replace(
         "return file.read()", "return tidy(file.read())").replace("text.strip()", "tidy(side)")}),
    ("src/app.py:18", "`check` now needs `strict`, and this call does not fit",
     {"src/app.py": app("def check(self, key)", "def check(self, key, strict)")}),
    ("tests/test_app.py:9", "`test_tidy` was taken out (line 9 before), while the code under test",
     {"src/app.py": app("text.strip()", "text.rstrip()"),
      "tests/test_app.py": TEST.replace("def test_tidy():\n    assert tidy(\" a \") == \"a\"\n\n\n", "")}),
    ("web/b.js:1", "`one` is gone from `web/a.js`", {"web/a.js": "export const two = 2;\n"}),
    ("src/user.py:1", "`tidy` moved to `src/text.py`, and this imports it from its old place",
     {"src/app.py": app("def tidy(text):\n    return text.strip()\n\n\n", ""),
      "src/text.py": "def tidy(text):\n    return text.strip()\n"}),
]  # fmt: skip


@pytest.mark.parametrize(("place", "said", "files"), BLOCKING)
async def test_what_blocks(
    place: str, said: str, files: dict[str, str | bytes | None], repo: Repo
) -> None:
    repo.commit("Change", files)
    text = await text_of(repo)
    verdict = section(text, "Verdict")
    assert verdict.startswith("**Request changes.**"), text
    assert any(
        line.startswith(f"- `{place}` ") and said in line for line in verdict.splitlines()
    ), text


QUESTIONS = [
    ("src/app.py:15", "A bare `except:`", with_line("try:\n    x = 1\nexcept:\n    x = 2")),
    ("src/app.py:15", "caught here and dropped",
     with_line("try:\n    x = 1\nexcept Exception:\n    pass")),
    ("src/app.py:12", "The default of `seen` is one object",
     {"src/app.py": app("def tidy(text)", "def tidy(text, seen=[])")}),
    ("src/app.py:13", "`is` compares identity", with_line("x = text is 'a'")),
    ("src/app.py:13", "run whatever text reaches", with_line("eval(text)")),
    ("src/app.py:23", "No test that I have seen mentions `fresh`",
     {"src/app.py": APP + "\ndef fresh(a):\n    return a + 1\n"}),
    ("src/app.py:13", "5 lines of code change and no test does",
     {"src/app.py": app("    return text.strip()",
                        "    a = text\n    b = a\n    c = b\n    d = c\n    return d.strip()")}),
    ("tests/test_app.py:9", "A test is switched off here",
     {"tests/test_app.py": TEST.replace("def test_tidy", "@pytest.mark.skip\ndef test_tidy")}),
    ("tests/test_app.py:17", "`test_none` cannot fail unless an error",
     {"tests/test_app.py": TEST + "\n\ndef test_none():\n    tidy('a')\n"}),
    ("logo.png", "A binary file is added", {"logo.png": b"\x89PNG\x00\x01"}),
]  # fmt: skip


NITS = [
    ("src/app.py:13", "meant to stay", with_line("print(text)")),
    ("src/app.py:13", "`TODO: later` is added", with_line("x = 1  # TODO: later")),
    ("src/app.py:13", "Compare with None by `is`", with_line("x = text == None")),
    ("src/app.py:12", "is 71 lines long now",
     with_line("\n".join(f"a{n} = {n}" for n in range(69)))),
    ("src/app.py:23", "`fresh` is new, and no page of docs",
     {"src/app.py": APP + "\ndef fresh(a):\n    return a + 1\n",
      "tests/test_app.py": TEST + "\n\ndef test_fresh():\n    assert fresh(1) == 2\n"}),
    ("README.md:1", "this page still tells of it",
     {"src/app.py": app("def tidy(text)", "def clean(text)"),
      "src/user.py": USER.replace("tidy", "clean"), "tests/test_app.py": TEST.replace("tidy", "clean")}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "place", "said", "files"),
    [*(("Questions", *each) for each in QUESTIONS), *(("Nits", *each) for each in NITS)],
)
async def test_what_does_not_block(
    name: str, place: str, said: str, files: dict[str, str | bytes | None], repo: Repo
) -> None:
    repo.commit("Change", files)
    text = await text_of(repo)
    assert "**Request changes" not in text, text
    lines = section(text, name).splitlines()
    assert any(line.startswith(f"- `{place}` ") and said in line for line in lines), text


CLEAN = [
    # A function with its test and its page.
    {"src/app.py": APP + '\ndef fresh(a: int) -> int:\n    """One more."""\n    return a + 1\n',
     "tests/test_app.py": TEST + "\n\ndef test_fresh():\n    assert fresh(1) == 2\n",
     "README.md": "Call `tidy` on text, `fresh` on numbers.\n"},
    # A new parameter with a default, given by name at one caller.
    {"src/app.py": app("path, mode)", "path, mode, encoding=None)")
     .replace("open(path, mode)", "open(path, mode, encoding=encoding)"),
     "src/user.py": USER.replace("'r')", "'r', encoding='utf-8')")},
    # A rename that takes every caller, test and page along.
    {"src/app.py": APP.replace("tidy", "clean"), "src/user.py": USER.replace("tidy", "clean"),
     "tests/test_app.py": TEST.replace("tidy", "clean"), "README.md": "Call `clean` on text.\n"},
    # A name removed with its test and all of its uses.
    {"src/app.py": app("def tidy(text):\n    return text.strip()\n\n\n", ""),
     "src/user.py": "from src.app import LIMIT, load\n\n\ndef go():\n    return load('b', 'r')[:LIMIT]\n",
     "tests/test_app.py": TEST.replace(", tidy", "").replace(
         "def test_tidy():\n    assert tidy(\" a \") == \"a\"\n\n\n", ""),
     "README.md": "Call `load` on paths.\n"},
    # Words in strings, comments and docs that look like trouble.
    {**with_line('x = "breakpoint() except: == None <<<<<<< TODO eval("'),
     "README.md": "Call `tidy`.\n\nTitle\n=======\n\nNever `breakpoint()`; `except: pass` is bad.\n"},
    # A local variable named like a function that went away.
    {"src/app.py": app("def tidy(text):\n    return text.strip()\n\n\n", "").replace(
        "return self.check(key)", "tidy = key\n        return self.check(tidy)"),
     "src/user.py": "from src.app import LIMIT, load\n\n\ndef go():\n    return load('b', 'r')[:LIMIT]\n",
     "tests/test_app.py": TEST.replace(", tidy", "").replace(
         "def test_tidy():\n    assert tidy(\" a \") == \"a\"\n\n\n", ""),
     "README.md": "Call `load` on paths.\n"},
]  # fmt: skip


@pytest.mark.parametrize("files", CLEAN)
async def test_a_clean_change_is_approved(files: dict[str, str | bytes | None], repo: Repo) -> None:
    repo.commit("Change", files)
    text = await text_of(repo)
    names = ["Verdict", "Understanding", "What we like", "Questions", "Nits"]
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == names
    assert "offline rules, not a model" in section(text, "Verdict")
    assert section(text, "Verdict").startswith("**Approve.**"), text
    assert section(text, "Questions") == "None.", text
    assert section(text, "Nits").strip() == "None.", text
    assert re.search(r"^- `[^`]+:\d+` ", section(text, "What we like"), re.MULTILINE), text
