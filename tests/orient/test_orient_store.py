"""Packets in the store: one a wave, final, journalled, and the same when compiled again."""

from __future__ import annotations

import dataclasses

import pytest
from orient_made import fact, profile
from orient_world import World

from cockpit.orient.compile_packet import UnknownAlgorithm, compile_packet
from cockpit.orient.diff_packets import diff_packets
from cockpit.orient.verify_packet import recompile_packet, verify_packet
from cockpit.store.context import packets
from cockpit.store.context.facts import Fact, Level
from cockpit.store.db.connection import connect
from cockpit.store.journal import journal
from cockpit.store.journal.event_types import Action

HOSTILE = ("a,b.py", 'q"uote.py', "new\nline.py", "unit\x1fsep.py", "emoji-🙂.py", "nul\\0")


def seen(name: str, text: str = "words", tokens: int = 40, **known: object) -> Fact:
    return Fact(
        "file",
        f"file:{name}",
        "situational",
        Level(text, tokens),
        Level(f"{name}: {len(text)} characters", 8),
        **known,  # type: ignore[arg-type]  # the fields of Fact
    )


def rows(world: World, action: Action) -> list[journal.Row]:
    return [row for row in world.store.read_now(journal.rows) if row.action == action]


def test_a_packet_is_stored_with_its_journal_row(world: World) -> None:
    wave_id = world.wave([seen("a.py"), seen("b.py")])
    stored = world.store.read_now(lambda c: packets.load(c, wave_id))
    assert stored.packet_id == f"k-{stored.digest[:16]}-{wave_id}"
    assert stored.packet.digest == stored.digest
    (row,) = rows(world, Action.PACKET_COMPILED)
    assert (row.wave_id, row.packet_id) == (wave_id, stored.packet_id)
    assert (row.profile_id, row.profile_version) == ("default", 1)
    assert row.raw_detail()["digest"] == stored.digest
    assert row.raw_detail()["facts"] == 2
    # 40 tokens of text each, and 16 around it.
    assert row.raw_detail()["bands"][3] == {
        "band": "situational", "used": 112, "min": 45_000, "target": 75_000, "max": 110_000,
        "facts": 2, "dropped": 0,
    }  # fmt: skip


def test_a_wave_has_one_packet_and_the_same_one_again_changes_nothing(world: World) -> None:
    wave_id = world.wave([seen("a.py")])
    stored = world.store.read_now(lambda c: packets.load(c, wave_id))
    again = {"pinned_now": "2026", "session_id": world.session_id}
    same = world.store.write_now(lambda tx: packets.insert(tx, wave_id, stored.packet, **again))
    assert same == stored.packet_id
    assert len(rows(world, Action.PACKET_COMPILED)) == 1
    other = dataclasses.replace(stored.packet, token_used=1)
    with pytest.raises(packets.PacketExists, match="cannot replace it"):
        world.store.write_now(lambda tx: packets.insert(tx, wave_id, other, **again))
    assert world.store.read_now(lambda c: packets.load(c, wave_id)) == stored


def test_a_past_packet_verifies_after_later_waves_changed_its_facts(world: World) -> None:
    first = world.wave([seen("a.py", "one", dedupe_key="a.py"), seen("b.py")])
    world.wave([seen("a.py", "two", dedupe_key="a.py"), seen("c.py", pinned=True)])
    verified = verify_packet(world.store, first)
    assert verified.ok
    (row,) = rows(world, Action.PACKET_VERIFIED)
    digest = verified.digest
    assert row.raw_detail() == {"digest": digest, "recompiled": digest, "ok": True}
    assert (row.result, row.actor, row.packet_id) == ("ok", "person", verified.packet_id)


def tamper(world: World, *statements: str) -> None:
    connection = connect(world.store.path)
    try:
        for statement in statements:
            connection.execute(statement)
    finally:
        connection.close()


def test_a_changed_fact_is_found(world: World) -> None:
    wave_id = world.wave([seen("a.py"), seen("b.py")])
    tamper(world, "UPDATE session_facts SET cost_full=41 WHERE source_ref='file:a.py'")
    verified = verify_packet(world.store, wave_id)
    assert not verified.ok
    assert "the facts or the profile" in verified.words
    (row,) = rows(world, Action.PACKET_VERIFIED)
    kept = (row.result, row.error_code, row.raw_detail()["ok"])
    assert kept == ("error", "packet_differs", False)


def test_a_changed_profile_is_found(world: World) -> None:
    wave_id = world.wave([seen("a.py")])
    tamper(world, "UPDATE attention_rules SET priority_weight=0.5 WHERE source_type='log'")
    assert not verify_packet(world.store, wave_id).ok


def test_a_changed_body_is_found(world: World) -> None:
    wave_id = world.wave([seen("a.py")])
    tamper(
        world,
        "DROP TRIGGER orientation_packets_no_update",
        "UPDATE orientation_packets SET packet_json=replace(packet_json, '\"dropped\":0', '\"dropped\":1')",
    )
    verified = verify_packet(world.store, wave_id)
    assert not verified.ok
    assert "was changed after it was written" in verified.words


def test_a_packet_of_another_algorithm_says_so(world: World) -> None:
    wave_id = world.wave([seen("a.py")])
    tamper(
        world,
        "DROP TRIGGER orientation_packets_no_update",
        "UPDATE orientation_packets SET packet_json=replace(packet_json, 'epochs/', 'lost/')",
    )
    with pytest.raises(UnknownAlgorithm, match="lost/"):
        world.store.read_now(lambda c: recompile_packet(c, wave_id))


def test_the_difference_of_two_waves(world: World) -> None:
    first = world.wave([seen("a.py", "one", dedupe_key="a.py"), seen("b.py")])
    second = world.wave([seen("a.py", "two", dedupe_key="a.py")])
    before, after = (
        world.store.read_now(lambda c, w=wave: packets.load(c, w)).packet
        for wave in (first, second)
    )
    found = diff_packets(before, after)
    assert [band for band, _ in found.added] == ["situational"]
    assert [entry.ordinal for _, entry in found.added] == [2]
    assert [entry.ordinal for _, entry in found.removed] == [1]
    assert found.changed == ()
    assert diff_packets(after, after).same


def test_a_fact_that_was_shortened_is_a_change() -> None:
    large = fact("large", tokens=300, outline=50)
    wide, narrow = (profile({"situational": (0, room, room)}) for room in (300, 100))
    (change,) = diff_packets(
        compile_packet([large], wide, 1), compile_packet([large], narrow, 1)
    ).changed
    assert (change.before.level, change.after.level) == ("full", "outline")
    assert change.band_before == change.band_after == "situational"
