"""``file:GLOB``: one item for a person, many files; never what the project does not list."""

from __future__ import annotations

import pytest
from observe_world import Project

from cockpit.observe.context_request import parse_request
from cockpit.observe.fan_out import ObserveLimits
from cockpit.observe.gateway import ContextGateway
from cockpit.observe.scope_items import parse_item


def gateway(
    project: Project, rev: str | None = None, caps: ObserveLimits | None = None
) -> ContextGateway:
    return ContextGateway.of(root=project.root, rev=rev, limits=caps)


async def expanded(project: Project, item: str, rev: str | None = None) -> list[str]:
    (found,) = await gateway(project, rev).expand([parse_item(item)])
    return [str(one) for one in found]


async def test_a_glob_means_its_files_with_its_lines_and_level(project: Project) -> None:
    assert await expanded(project, "file:src/*.py") == ["file:src/app.py", "file:src/use.py"]
    assert await expanded(project, "file:**/*app*:1-3 @outline") == [
        "file:src/app.py:1-3 @outline",
        "file:tests/test_app.py:1-3 @outline",
    ]
    assert await expanded(project, "file:src/app.py") == ["file:src/app.py"]
    assert await expanded(project, "tree:src") == ["tree:src"]


async def test_a_file_that_is_called_like_a_glob_is_itself(project: Project) -> None:
    project.write("pages/[id].tsx", "export default 1\n").write("pages/i.tsx", "export default 2\n")
    assert await expanded(project, "file:pages/[id].tsx") == ["file:pages/[id].tsx"]
    head = project.commit("pages")
    assert await expanded(project, "file:pages/[id].tsx", head) == ["file:pages/[id].tsx"]
    assert await expanded(project, "file:pages/[i].tsx") == ["file:pages/i.tsx"]


async def test_what_git_ignores_and_links_that_lead_out_are_not_meant(project, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret.py"
    outside.write_text("SECRET = 1\n")
    project.write(".gitignore", "hidden.py\n").write("src/hidden.py", "x = 1\n")
    (project.root / "src" / "link.py").symlink_to(outside)
    assert await expanded(project, "file:src/*.py") == ["file:src/app.py", "file:src/use.py"]


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ("file:nothing/*.zz", "no file of the project matches"),
        ("file:../*.py", "climbs"),
        ("file:/etc/*", "absolute"),
        ("file:.git/*", "git's own files"),
        ("file:a*b*c*d*e*f*g*h*i*j*", "too many wildcards"),
    ],
)
async def test_a_glob_that_means_nothing_says_why(project: Project, item: str, why: str) -> None:
    asked = parse_request({"purpose": "p", "question": "q", "scope": [item]})
    (preview,) = await gateway(project).preview(asked)
    assert why in preview.refused
    fetched = await gateway(project).fetch(asked)
    assert fetched.facts == () and why in fetched.outcomes[0].error


async def test_a_globs_outcome_adds_up_and_names_the_files_that_failed(project: Project) -> None:
    project.write("src/raw.py", b"a\0b")
    asked = parse_request({"purpose": "p", "question": "q", "scope": ["file:src/*.py", "tree:."]})
    fetched = await gateway(project).fetch(asked)
    outcome, tree = fetched.outcomes
    assert (outcome.facts, tree.facts) == (2, 1)
    assert outcome.error == "file:src/raw.py: 'src/raw.py' is binary"
    assert outcome.tokens == sum(f.cost.full for f in fetched.facts if f.source_type == "file")
