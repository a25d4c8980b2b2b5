"""``search:`` and ``symbol:``: the answer of Python's expressions, in bounded time."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from observe_world import Project

from cockpit.observe.path_globs import matches_glob
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.scope_items import ScopeItem, parse_item
from cockpit.observe.sources.file import FileSource
from cockpit.observe.sources.search import MAX_MATCHES, SearchSource
from cockpit.observe.sources.symbol import SymbolSource
from cockpit.observe.sources.text_search import search_text
from cockpit.store.context.facts import Fact

pytestmark = pytest.mark.slow


async def search(project: Project, text: str, rev: str | None = None) -> Fact:
    (fact,) = await SearchSource().fetch(
        parse_item(text), ProjectSnapshot.at(project.root, rev=rev)
    )
    return fact


async def symbol(project: Project, name: str, rev: str | None = None) -> Fact:
    ground = ProjectSnapshot.at(project.root, rev=rev)
    (fact,) = await SymbolSource().fetch(ScopeItem("symbol", name), ground)
    return fact


async def test_lines_are_found_in_order(project: Project) -> None:
    fact = await search(project, "search:\\bload\\b")
    assert fact.full.text.split("\n") == [
        "README.md:3: Words about load.",
        "src/app.py:9:     def load(self, path, mode='r'):",
        'src/use.py:6:     print(config.load("x"), helper(1))',
    ]
    assert fact.provenance is not None
    assert (fact.provenance["matches"], fact.provenance["files"]) == (3, 3)
    inside = await search(project, "search:load in src/*.py")
    assert len(inside.full.text.split("\n")) == 2


async def test_the_revision_is_searched_not_the_disk(project: Project) -> None:
    project.write("src/app.py", "load load\n").write("new.py", "load\n")
    at_head = await search(project, "search:load", project.head)
    assert "new.py" not in at_head.full.text and "mode='r'" in at_head.full.text
    first = project.git("rev-parse", "HEAD~1").strip()
    assert "mode='r'" not in (await search(project, "search:load", first)).full.text
    assert "new.py:1: load" in (await search(project, "search:load")).full.text


async def test_nothing_found_is_an_answer(project: Project) -> None:
    fact = await search(project, "search:nowhere_at_all")
    assert fact.full.text == "no line matches 'nowhere_at_all'"
    with pytest.raises(SourceFailed, match="matches"):
        await search(project, "search:x in *.nothing")


async def test_many_matches_are_capped_and_counted(project: Project) -> None:
    project.write("many.txt", "needle\n" * 1_000)
    fact = await search(project, "search:needle")
    lines = fact.full.text.split("\n")
    assert len(lines) == MAX_MATCHES + 1
    assert lines[-1] == f"… {1_000 - MAX_MATCHES} more matching lines; narrow the search"
    assert fact.provenance is not None and fact.provenance["matches"] == 1_000


async def test_long_lines_binaries_and_ignored_files(project: Project) -> None:
    project.write("min.js", "x" * 5_000 + "needle" + "y" * 5_000).write("b.bin", b"needle\0needle")
    project.write(".gitignore", "skip.txt\n").write("skip.txt", "needle\n")
    fact = await search(project, "search:needle")
    (line,) = fact.full.text.split("\n")
    assert line.startswith("min.js:1: …x") and "needle" in line and len(line) < 500


@pytest.mark.parametrize("regex", ["(a", "[z-a]", "a{9999999999999}"])
async def test_faulty_expressions_get_words(project: Project, regex: str) -> None:
    for act in (SearchSource().preview, SearchSource().fetch):
        with pytest.raises(SourceFailed, match="not a regular expression"):
            await act(ScopeItem("search", regex), ProjectSnapshot.at(project.root))


async def test_an_expression_that_takes_for_ever_is_ended(project: Project) -> None:
    project.write("trap.txt", "a" * 60 + "b\n")
    with pytest.raises(SourceFailed, match="takes too long"):
        await search_text(r"(a+)+$", ProjectSnapshot.at(project.root), most=10, timeout_s=0.1)


async def test_links_out_are_never_searched(project: Project, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("canary\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "deep").write_text("canary\n")
    (project.root / "out").symlink_to("../secret")
    (project.root / "dir").symlink_to("../folder")
    assert "no line" in (await search(project, "search:canary")).full.text
    project.commit("links")
    assert "no line" in (await search(project, "search:canary", project.head)).full.text


MATCHES = (
    (None, "a/b.py"), ("*.py", "a/b.py"), ("a/*.py", "a/b.py"), ("a/**/*.py", "a/b.py"),
    ("a/**/*.py", "a/c/d/b.py"), ("**/*.py", "b.py"), ("a", "a/b.py"), ("a/", "a/b.py"),
    ("a/**", "a/c/b.py"), ("?.py", "a/b.py"), ("[ab].py", "x/a.py"), ("[id].tsx", "[id].tsx"),
    ("[", "["),
)  # fmt: skip
OTHERS = (
    ("*.py", "a/b.pyi"),
    ("a/*.py", "a/c/b.py"),
    ("a", "ab/c.py"),
    ("[!ab].py", "x/a.py"),
    ("a.c", "abc"),
)


def test_globs() -> None:
    assert [(glob, path) for glob, path in MATCHES if not matches_glob(path, glob)] == []
    assert [(glob, path) for glob, path in OTHERS if matches_glob(path, glob)] == []


@pytest.mark.search
@settings(max_examples=examples(35))
@given(st.text("ab*?[]!-/.", max_size=12), st.text("ab/.", max_size=40))
def test_no_glob_breaks_or_hangs(glob: str, path: str) -> None:
    try:
        assert matches_glob(path, glob) in {True, False}
    except SourceFailed as refused:
        assert "glob" in str(refused)


async def test_definitions_come_with_their_code_and_uses(project: Project) -> None:
    fact = await symbol(project, "helper")
    assert fact.provenance is not None
    assert fact.provenance["definitions"] == [["src/app.py", 14, 15]]
    assert fact.provenance["references"] == [
        ["src/use.py", 1],
        ["src/use.py", 6],
        ["tests/test_app.py", 1],
        ["tests/test_app.py", 5],
    ]
    assert "defined at src/app.py:14-15\ndef helper(value):\n    return value + LIMIT" in (
        fact.full.text
    )
    assert "src/use.py:6: print(config.load" in fact.full.text
    assert fact.outline is None or fact.outline.tokens < fact.full.tokens


async def test_constants_decorators_and_nested_functions(project: Project) -> None:
    project.write(
        "deco.py",
        "import functools\n\n\n@functools.cache\n@other\ndef wrapped():\n    def inner():\n"
        "        pass\n    return inner\n\nif True:\n    def late(): ...\n",
    )
    for name, place in (("wrapped", [4, 9]), ("wrapped.inner", [7, 8]), ("late", [12, 12])):
        fact = await symbol(project, name)
        assert fact.provenance is not None
        assert fact.provenance["definitions"] == [["deco.py", *place]]
    constant = await symbol(project, "LIMIT")
    assert constant.provenance is not None
    assert constant.provenance["definitions"] == [["src/app.py", 3, 3]]
    assert constant.provenance["references"] == [["src/app.py", 15]]


async def test_other_languages_and_broken_python(project: Project) -> None:
    project.write("a.js", "export function draw(x) {\n  return x;\n}\nconst y = draw(1);\n")
    project.write("b.go", "func draw(x int) int {\n\treturn x\n}\n")
    project.write("c.py", "def draw(:\n    pass\n").write("d.txt", "drawing draw\n")
    fact = await symbol(project, "draw")
    assert fact.provenance is not None
    assert fact.provenance["definitions"] == [["a.js", 1, 3], ["b.go", 1, 3], ["c.py", 1, 2]]
    assert fact.provenance["references"] == [["a.js", 4], ["d.txt", 1]]


async def test_hostile_python_is_survived(project: Project) -> None:
    project.write("deep.py", "x = " + "(" * 5_000 + "draw" + ")" * 5_000)
    project.write("minus.py", "draw = " + "-" * 50_000 + "1").write("nul.py", b"draw\0draw")
    project.write("sound.py", "def draw(): ...\n")
    fact = await symbol(project, "draw")
    assert fact.provenance is not None
    assert ["sound.py", 1, 1] in fact.provenance["definitions"]


async def test_lines_of_a_private_key_are_never_shown_alone(project: Project) -> None:
    body = "\n".join(f"MIIEpAIBAAKCAQEA{n}canary{n}base64" for n in range(5))
    key = f"-----BEGIN {'PRIVATE'} KEY-----\n{body}\n-----END {'PRIVATE'} KEY-----\n"
    project.write("key.txt", f"first\n{key}last\n").write("key.py", f'KEY = """{key}"""\nKEY\n')
    head = project.commit("key")
    for rev in (None, head):
        assert "no line" in (await search(project, "search:canary", rev)).full.text
        assert "canary" not in repr(await symbol(project, "KEY", rev))
        ground = ProjectSnapshot.at(project.root, rev=rev)
        (fact,) = await FileSource().fetch(parse_item("file:key.txt:4-9"), ground)
        assert "canary" not in fact.full.text and fact.full.text.endswith("last\n")


async def test_half_a_secret_is_not_shown(project: Project) -> None:
    canary = "ghp_" + "a1B2" * 9
    for gap in range(90, 110, 5):
        line = f"{'x' * 1000} {canary}{' ' * (gap - 60)}needle {'y ' * 130}{canary} {'z' * 1000}"
        project.write("one.txt", f"{line}\n")
        assert canary[-8:] not in (await search(project, "search:needle")).full.text
    project.write("two.txt", f"{'w ' * 140} needle {canary}\n")
    assert canary[:8] not in (await symbol(project, "needle")).full.text
