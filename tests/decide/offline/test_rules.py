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


TIDY = "def tidy(text):\n    return text.strip()\n\n\n"
TEST_TIDY = 'def test_tidy():\n    assert tidy(" a ") == "a"\n\n\n'
WITHOUT_TEST = {"tests/test_app.py": TEST.replace(TEST_TIDY, "")}
LONG = "".join(f"    a{n} = {n}\n" for n in range(69))
FRESH = {"src/app.py": APP + "\ndef fresh(a):\n    return a + 1\n"}
PLANTED = [
    (with_line(f'breakpoint()\nkey = "ghp_{"a1B2" * 9}"\nx = \'a\u202eb\'\nassert (text, "not empty")'),
     [("Verdict", "src/app.py:13", "A debugger stop was left in"),
      ("Verdict", "src/app.py:14", "A github token is committed here"),
      ("Verdict", "src/app.py:15", "U+202E changes the order"),
      ("Verdict", "src/app.py:16", "asserts a tuple")]),
    ({**with_line("x = 1"), "src/app.py": app("    return text", "<<<<<<< ours\n    return text"),
      "web/a.js": "export const two = 2;\n"},
     [("Verdict", "src/app.py:13", "A conflict marker was committed: `<<<<<<<`"),
      ("Verdict", "web/b.js:1", "`one` is gone from `web/a.js`")]),
    (with_line("if text\n    pass"), [("Verdict", "src/app.py:13", "cannot parse this file")]),
    ({"src/app.py": app(TIDY, "").replace("path, mode)", "path, mode, encoding)"),
      "tests/test_app.py": TEST.replace(TEST_TIDY, "").replace(", tidy", "")},
     [("Verdict", "src/user.py:1",
       "`tidy` is gone from `src/app.py`, and is used here (also `src/user.py:5`)"),
      ("Verdict", "src/user.py:5", "`load` now needs `encoding`, and this call does not fit")]),
    ({"src/app.py": app("def tidy(text)", "def tidy(text, side)").replace(
        "return file.read()", "return tidy(file.read())").replace("text.strip()", "tidy(side)").replace(
        "def check(self, key)", "def check(self, key, strict)")},
     [("Verdict", "src/app.py:9", "`tidy` now needs `side`, and this call does not fit"),
      ("Verdict", "src/app.py:18", "`check` now needs `strict`, and this call does not fit")]),
    ({"src/app.py": app("text.strip()", "text.rstrip()"), **WITHOUT_TEST},
     [("Verdict", "tests/test_app.py:9",
       "`test_tidy` was taken out (line 9 before), while the code under test")]),
    ({"src/app.py": app(TIDY, ""), "src/text.py": TIDY.rstrip() + "\n"},
     [("Verdict", "src/user.py:1",
       "`tidy` moved to `src/text.py`, and this imports it from its old place")]),
    (with_line("try:\n    x = 1\nexcept:\n    x = text is 'a'\n"
               "try:\n    eval(text)\nexcept Exception:\n    pass"),
     [("Questions", "src/app.py:15", "A bare `except:`"),
      ("Questions", "src/app.py:16", "`is` compares identity"),
      ("Questions", "src/app.py:18", "run whatever text reaches"),
      ("Questions", "src/app.py:19", "caught here and dropped")]),
    ({"src/app.py": app("def tidy(text)", "def tidy(text, seen=[])"), "logo.png": b"\x89PNG\x00\x01"},
     [("Questions", "src/app.py:12", "The default of `seen` is one object"),
      ("Questions", "logo.png", "A binary file is added")]),
    (FRESH, [("Questions", "src/app.py:23", "No test that I have seen mentions `fresh`")]),
    ({"src/app.py": app("    return text.strip()",
                        "    a = text\n    b = a\n    c = b\n    d = c\n    return d.strip()")},
     [("Questions", "src/app.py:13", "5 lines of code change and no test does")]),
    ({"tests/test_app.py": TEST.replace("def test_tidy", "@pytest.mark.skip\ndef test_tidy")
      + "\n\ndef test_none():\n    tidy('a')\n"},
     [("Questions", "tests/test_app.py:9", "A test is switched off here"),
      ("Questions", "tests/test_app.py:18", "`test_none` cannot fail unless an error")]),
    (with_line("print(text)\nx = 1  # TODO: later\nx = text == None"),
     [("Nits", "src/app.py:13", "meant to stay"),
      ("Nits", "src/app.py:14", "`TODO: later` is added"),
      ("Nits", "src/app.py:15", "Compare with None by `is`")]),
    ({**FRESH, "tests/test_app.py": TEST + "\n\ndef test_fresh():\n    assert fresh(1) == 2\n"},
     [("Nits", "src/app.py:23", "`fresh` is new, and no page of docs")]),
    ({"src/app.py": app(TIDY, f"def clean(text):\n{LONG}    return text.strip()\n\n\n"),
      "src/user.py": USER.replace("tidy", "clean"), "tests/test_app.py": TEST.replace("tidy", "clean")},
     [("Nits", "src/app.py:12", "is 71 lines long now"),
      ("Nits", "README.md:1", "this page still tells of it")]),
]  # fmt: skip


@pytest.mark.parametrize(("files", "told"), PLANTED)
async def test_what_is_planted_is_told_at_its_place(
    files: dict[str, str | bytes | None], told: list[tuple[str, str, str]], repo: Repo
) -> None:
    """What blocks is in the verdict; all else is a question or a nit, and blocks nothing."""
    repo.commit("Change", files)
    text = await text_of(repo)
    for name, place, said in told:
        lines = section(text, name).splitlines()
        assert any(line.startswith(f"- `{place}` ") and said in line for line in lines), text
    blocks = any(name == "Verdict" for name, _, _ in told)
    assert section(text, "Verdict").startswith("**Request changes.**") == blocks, text


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
