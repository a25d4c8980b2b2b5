"""A rule never covers a request outside the shape of its evidence; what ends it ends it at once."""

from __future__ import annotations

import threading

import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loop.trust.covered_oracle import covers_command, covers_item
from loop.trust.trust_world import TrustWorld, open_trust, passed

from cockpit.core.clock import RandomIds, SystemClock
from cockpit.store.db.database import Store

NAMES = st.sampled_from(
    ["a", "b.c", "test_a", "..", ".x", "x y", "-x", "*", "é", "a\u200b", "A", ""]
)
FOLDERS = st.sampled_from(
    ["tests", "src", "tests/deep", "", "..", "/etc", ".git", "Tests", "src/.."]
)
SUFFIXES = st.sampled_from([".py", ".pyc", "", ".key", ".PY", ".json"])


@st.composite
def paths(draw: st.DrawFn) -> str:
    folder, name, suffix = draw(FOLDERS), draw(NAMES), draw(SUFFIXES)
    return f"{folder}/{name}{suffix}" if folder else f"{name}{suffix}"


ITEMS = st.one_of(
    paths().map("file:{}".format),
    paths().map("file:{}:1-9".format),
    st.tuples(paths(), st.sampled_from(["@outline", "@reference"])).map(
        lambda p: f"file:{p[0]} {p[1]}"
    ),
    paths().map("search:x in {}".format),
    st.sampled_from(["pr:24", "pr:25", "diff:main..HEAD", "tree:tests", "symbol:f", "docs:how"]),
)
WORDS = st.sampled_from(
    "pytest -q -x -p --lf -c evil env sh ; A=1 mypy @args.py @src/args.py check ruff".split()  # noqa: SIM905
)
COMMANDS = st.lists(WORDS | paths() | paths().map("{}::test_x".format), min_size=1, max_size=5).map(
    tuple
)
MANY = settings(
    max_examples=examples(12),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory):
    """A world with rules for items and commands of several shapes."""
    folder = tmp_path_factory.mktemp("trust")
    root = folder / "project"
    root.mkdir()
    world = open_trust(folder, root)
    with world.store:
        world.learn_rule(
            lambda session, number: world.read(session, f"file:tests/test_{number}.py"),
            lambda session, number: world.read(session, f"file:src/m_{number}.py:1-{number + 3}"),
            lambda session, number: world.run(session, "pytest", "-q", f"tests/test_{number}.py"),
            lambda session, number: world.run(session, "pytest", f"src/{number}.py::test_x"),
        )
        assert len(world.rules().rules) == 4
        yield world


def words_of(world: TrustWorld, kind: str) -> list[tuple[str, ...]]:
    rules = world.rules().rules
    assert all(rule.status == "active" for rule in rules)
    prefix = {"context": "read ", "run": "run "}[kind]
    return [
        tuple(rule.says.removeprefix(prefix).replace("lines of", "lines_of").split())
        for rule in rules
        if rule.kind == kind
    ]


@pytest.mark.search
@MANY
@given(ITEMS)
def test_an_item_passes_exactly_where_the_oracle_says(learned, item):
    rules = [
        tuple(word.replace("lines_of", "lines of") for word in words)
        for words in words_of(learned, "context")
    ]
    allowed = any(covers_item(words, item) for words in rules)
    assert passed(learned.read(learned.begin(), item)) <= allowed


@pytest.mark.search
@MANY
@given(COMMANDS)
def test_a_command_passes_only_where_the_oracle_says(learned, argv):
    allowed = any(covers_command(words, argv) for words in words_of(learned, "run"))
    assert passed(learned.run(learned.begin(), *argv)) <= allowed


@pytest.mark.parametrize("end", ["suspend", "revoke"])
def test_no_process_uses_a_rule_after_it_ended(tmp_path, end):
    stores = [Store.open(tmp_path / "cockpit.db", SystemClock(), RandomIds()) for _ in range(2)]
    ours, other = (TrustWorld(store, tmp_path, count=at * 1_000) for at, store in enumerate(stores))
    with stores[0], stores[1]:
        (rule,) = ours.learn_rule(
            lambda session, number: ours.read(session, f"file:tests/test_{number}.py")
        )
        session, uses = other.begin(), threading.Event()

        def use() -> None:
            for number in range(40):
                proposal = other.read(session, f"file:tests/test_{number}.py")
                uses.set()
                if not passed(proposal):
                    return

        user = threading.Thread(target=use)
        user.start()
        assert uses.wait(60)
        getattr(ours, end)(rule.rule_id)
        user.join()
        *_, ended = ours.rows("trust.changed")
        assert all(row.seq < ended.seq for row in ours.rows("trust.used"))
        assert not passed(other.read(session, "file:tests/after.py"))
