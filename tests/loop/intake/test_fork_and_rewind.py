"""A session forks after a wave and goes back to one, with its files, and nothing is lost."""

from __future__ import annotations

import pytest

from cockpit.core.errors import IllegalTransition, NotFound
from cockpit.loop.intake.fork_session import fork_session, list_waves_to_fork
from cockpit.loop.rewind.apply_rewind import bring_back, list_rewound, rewind
from cockpit.loop.rewind.plan_rewind import plan_rewind
from cockpit.loop.runtime_settings import Limits
from cockpit.orient.verify_packet import recompile_packet
from cockpit.store.context import facts, packets
from cockpit.store.journal import journal, verify_chain
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import messages, sessions, waves

pytestmark = pytest.mark.slow


def rows_of(connection, session_id):
    """Everything that the store has of a session."""
    tables = ("sessions", "wave_runs", "messages", "session_facts", "proposals", "plans")
    tables += ("context_requests", "journal")
    stored = {}
    for table in tables:
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        key = "session_id" if "session_id" in names else "wave_id"
        condition = f"{key}=?" if key == "session_id" else "substr(wave_id, 1, length(?))=?2"
        given = (session_id,) if key == "session_id" else (session_id, session_id)
        query = f"SELECT * FROM {table} WHERE {condition} ORDER BY 1, 2, 3"
        stored[table] = connection.execute(query, given).fetchall()
    assert all(stored.values())
    return stored


async def test_a_fork_continues_after_a_wave_and_leaves_its_session_alone(opened, fix, project):
    # What the first fork is to commit is committed already: its script would try for fifty waves.
    async with opened(limits=Limits(max_waves=5)) as runtime:
        store = runtime.store
        source = await runtime.start("fix add", model=fix, policy="all", interactive=False)
        assert (await runtime.run(source)).status == "completed"
        assert store.read_now(lambda c: list_waves_to_fork(c, source)) == [1, 2, 3]
        before = store.read_now(lambda c: rows_of(c, source))

        # Wave 1 asked for the files. The project has changed since: wave 2 wrote one of them.
        changed = (project / "calc.py").read_text()
        fork = await store.write(lambda tx: fork_session(tx, source, 1))
        forked = fork.session.session_id
        assert (fork.session.status, fork.session.title) == ("waiting", "fix add (fork)")
        assert store.read_now(lambda c: rows_of(c, source)) == before
        copied = store.read_now(lambda c: messages.select_for_session(c, forked))
        assert [(m.role, m.text) for m in copied] == [
            ("person", "fix add"),
            ("agent", "I need the file and its test before I change anything."),
        ]
        assert fork.messages == 2
        linked = store.read_now(lambda c: facts.select_linked(c, forked, 1))
        assert fork.facts == len(linked)
        assert "exchange:1.1" in [fact.source_ref for fact in linked]
        (row,) = [r for r in store.read_now(lambda c: journal.rows(c, session_id=forked))
                  if r.action == Action.SESSION_FORKED]  # fmt: skip
        assert (row.detail.source, row.detail.wave, row.actor) == (source, 1, "person")

        await runtime.say(forked, "commit it, then")
        await runtime.run(forked, interactive=False)
        done = store.read_now(lambda c: waves.select_for_session(c, forked))
        assert [w.ordinal for w in done][:2] == [1, 2]
        assert {w.phase for w in done} == {"completed"}
        packet = store.read_now(lambda c: packets.load(c, f"{forked}-w2")).packet
        shown = {entry.fact_id for _, entry in packet.rendered()}
        texts = store.read_now(lambda c: facts.load_texts(c, list(shown)))
        refs = {text.source_ref: text.full for text in texts.values()}
        assert {"exchange:1.1", "person:1"} <= set(refs)
        assert "commit it, then" in refs["person:1"]
        assert store.read_now(lambda c: recompile_packet(c, f"{forked}-w2")).ok

        # Forked after its last wave, it has the files as they are now, not as they were read.
        late = await store.write(lambda tx: fork_session(tx, source))
        assert late.wave == 3
        (project / "calc.py").write_text(changed + "\n# another hand\n")
        await runtime.say(late.session.session_id, "look again")
        await runtime.run(late.session.session_id, interactive=False)
        packet = store.read_now(lambda c: packets.load(c, f"{late.session.session_id}-w4")).packet
        texts = store.read_now(
            lambda c: facts.load_texts(c, [entry.fact_id for _, entry in packet.rendered()])
        )
        assert any(
            text.source_ref == "file:calc.py" and "another hand" in text.full
            for text in texts.values()
        )
        after = store.read_now(lambda c: rows_of(c, source))
        assert after == before
        assert (await store.read(verify_chain.verify)).ok


async def test_what_cannot_be_forked_says_why(runtime, fix):
    store = runtime.store
    session_id = await runtime.start("fix add", model=fix, policy="all", interactive=False)
    with pytest.raises(IllegalTransition, match="No wave"):
        await store.write(lambda tx: fork_session(tx, session_id))
    await runtime.run(session_id)
    with pytest.raises(NotFound, match="has no wave 9"):
        await store.write(lambda tx: fork_session(tx, session_id, 9))

    def as_agents(tx):
        tx.execute("UPDATE sessions SET agent='claude' WHERE session_id=?", (session_id,))
        assert list_waves_to_fork(tx.connection, session_id) == []
        fork_session(tx, session_id)

    with pytest.raises(IllegalTransition, match="external agent"):
        await store.write(as_agents)
    assert [s.session_id for s in store.read_now(sessions.select_recent)] == [session_id]


async def test_a_session_goes_back_with_its_files_and_forward_again(runtime, fix, project):
    original = (project / "calc.py").read_bytes()
    store, place = runtime.store, runtime.place
    source = await runtime.start("fix add", model=fix, policy="all", interactive=False)
    assert (await runtime.run(source)).status == "completed"
    written = (project / "calc.py").read_bytes()
    assert written != original
    session = store.read_now(lambda c: sessions.load(c, source))

    plan = await plan_rewind(store, source, 1)
    assert [(each.path, each.content) for each in plan.files] == [("calc.py", original)]
    assert all("not undone" in each for each in plan.stays)
    assert (project / "calc.py").read_bytes() == written, "a plan changes nothing"
    with pytest.raises(IllegalTransition):
        await plan_rewind(store, source, 9)

    # A file that changed after it was listed stays as it is, and is named.
    (project / "calc.py").write_bytes(written + b"# mine\n")
    done = await rewind(store, place, plan)
    assert done.files == ()
    assert done.stays[-1] == "calc.py: it changed meanwhile, and stays as it is."
    assert (project / "calc.py").read_bytes() == written + b"# mine\n"
    (stays,) = [each for each in (await plan_rewind(store, source, 1)).stays if "calc.py:" in each]
    assert "changed since" in stays

    (project / "calc.py").write_bytes(written)
    done = await rewind(store, place, await plan_rewind(store, source, 1))
    assert done.files == ("calc.py",)
    assert (project / "calc.py").read_bytes() == original
    assert done.session_id in list_rewound(place)
    assert store.read_now(lambda c: sessions.load(c, source)) == session
    forked = store.read_now(lambda c: sessions.load(c, done.session_id))
    assert forked.status == "waiting"
    assert (await plan_rewind(store, source, 1)).files == (), "it has its earlier content already"

    back = await bring_back(store, place, done.session_id)
    assert (back.session_id, back.files, back.stays) == (source, ("calc.py",), ())
    assert (project / "calc.py").read_bytes() == written
    assert done.session_id not in list_rewound(place)
    with pytest.raises(NotFound):
        await bring_back(store, place, done.session_id)
    rows = store.read_now(
        lambda c: [r for r in journal.rows(c) if r.action == Action.SESSION_REWOUND]
    )
    assert [(r.detail.forward, r.detail.files) for r in rows] == [
        (False, ()), (False, ("calc.py",)), (True, ("calc.py",)),
    ]  # fmt: skip
