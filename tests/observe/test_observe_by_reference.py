"""Secret and very large texts: a reference and an outline are kept, the raw content is not."""

from __future__ import annotations

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from observe_world import Project

from cockpit.access.secret_files import is_sensitive
from cockpit.observe.context_request import parse_request
from cockpit.observe.gateway import ContextGateway
from cockpit.observe.sensitive_files import LARGE_BYTES, list_setting_names
from cockpit.store.context.facts import Fact


async def fetched(project: Project, item: str) -> Fact:
    asked = parse_request({"purpose": "p", "question": "q", "scope": [item]})
    found = await ContextGateway.of(root=project.root).fetch(asked)
    assert found.outcomes[0].error == ""
    return found.facts[-1]


SENSITIVE = (
    ".env",
    "a/.env.production",
    "deploy/id_rsa",
    "x.pem",
    "infra/prod.tfvars",
    "secrets.yaml",
)
OTHER = (".env.example", "src/env.py", "docs/keys.md", "secrets.py", "id_rsa.pub", "a.keys")


def test_files_that_are_there_to_hold_secrets_are_known_by_name() -> None:
    assert [path for path in (*SENSITIVE, *OTHER) if is_sensitive(path)] == list(SENSITIVE)


async def test_of_a_file_of_secrets_only_the_names_are_kept(project: Project) -> None:
    project.write(".env", "# the shop\nexport SHOP_PIN=canary\nMODE = canary2\n")
    fact = await fetched(project, "file:.env")
    assert "canary" not in repr(fact)
    assert "2: SHOP_PIN=…\n3: MODE=…" in fact.full.text
    assert fact.provenance is not None and fact.provenance["by_reference"] is True
    asked = parse_request({"purpose": "p", "question": "q", "scope": ["file:.env"]})
    (preview,) = await ContextGateway.of(root=project.root).preview(asked)
    assert "holds secrets" in preview.note and not preview.refused


async def test_no_level_no_lines_and_no_link_show_a_value(project: Project) -> None:
    project.write(".env", "export SHOP_PIN=canary\nMODE=canary2\n")
    for item in ("file:.env:1-2", "file:.env @outline", "file:.env @reference"):
        assert "canary" not in repr(await fetched(project, item))
    (project.root / "notes.txt").symlink_to(".env")
    (project.root / "again.md").symlink_to("notes.txt")
    for item in ("file:notes.txt", "file:notes.txt:1-2", "file:again.md"):
        fact = await fetched(project, item)
        assert "canary" not in repr(fact) and "SHOP_PIN" in fact.full.text


async def test_neither_a_diff_nor_a_search_shows_it(project: Project) -> None:
    project.write(".env", "SHOP_PIN=canary\n").commit("one")
    project.write(".env", "SHOP_PIN=canary\nOTHER_PIN=canary2\n").commit("two")
    diff = await fetched(project, "diff:HEAD~1..HEAD")
    assert "canary" not in repr(diff) and ".env modified +1" in diff.full.text
    found = await fetched(project, "search:_PIN")
    assert "canary" not in repr(found) and ".env:1:" in found.full.text


async def test_a_very_large_file_is_its_outline_and_its_lines_can_be_asked_for(project):
    body = "".join(f"def f{n}():\n    return {n}  # {'x' * 60}\n" for n in range(5_000))
    project.write("big.py", body)
    assert len(body) > LARGE_BYTES
    fact = await fetched(project, "file:big.py")
    assert fact.provenance is not None and fact.provenance["by_reference"] is True
    assert "def f0()" in fact.full.text and "return 0" not in fact.full.text
    assert len(fact.full.text) < LARGE_BYTES // 8
    some = await fetched(project, "file:big.py:1-20")
    assert some.provenance is not None and "by_reference" not in some.provenance
    assert "return 9" in some.full.text


def test_names_are_not_values() -> None:
    assert list_setting_names('A=1\n  b.c: two\n"d": "three"\n') == "1: A=…\n2: b.c=…\n3: d=…"


@settings(max_examples=examples(25), deadline=None)
@given(st.binary(min_size=1, max_size=200))
def test_the_end_of_a_base64_block_is_no_name(content: bytes) -> None:
    import base64

    lines = base64.encodebytes(content).decode()
    assert list_setting_names(lines) == ""
