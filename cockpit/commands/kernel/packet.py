"""``cockpit packet``: what a wave knew, and why that and not something else."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import click

from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import choose_session, find_project, open_store, read_store
from cockpit.commands.terminal import format_table, say, show, show_json, show_list
from cockpit.core.errors import NotFound
from cockpit.core.text import pluralize
from cockpit.store.context import facts, packets, pins, profiles
from cockpit.store.context.packets import Packet, StoredPacket
from cockpit.store.context.pins import Pin
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import waves
from cockpit.store.sessions.waves import Wave

SESSION = click.option("--session", metavar="ID", help="The session; without it, the last one.")
WAVE = click.option("--wave", type=click.IntRange(min=1), metavar="N", help="Its wave number N.")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@click.group(short_help="What a wave knew, and why.")
def packet() -> None:
    """Orientation packets: one a wave, immutable, compiled again to the same digest."""


@packet.command("show")
@SESSION
@WAVE
@AS_JSON
def show_packet(session: str | None, wave: int | None, as_json: bool) -> None:
    """List the packets of a session, or show the one of --wave with every fact in it."""
    if wave is None:
        _list(session, as_json)
        return

    def read(connection: sqlite3.Connection) -> tuple[StoredPacket, dict[str, str]]:
        _, stored = _pick(connection, session, wave)
        held = [entry.fact_id for _, entry in stored.packet.rendered()]
        texts = facts.load_texts(connection, held)
        return stored, {identity: text.source_ref for identity, text in texts.items()}

    stored, refs = read_store(read)
    compiled = stored.packet
    if as_json:
        show_json({"packet_id": stored.packet_id, "digest": stored.digest, **compiled.body()})
        return
    show(f"{stored.packet_id}\ndigest {stored.digest}\n{_summary(compiled)}\n")
    show(_bands(compiled))
    rows = [
        (
            band,
            f"{entry.tokens:,}",
            entry.level,
            "pinned" if entry.pinned else "",
            refs[entry.fact_id],
        )
        for band, entry in compiled.rendered()
    ]
    show("\n" + format_table(("BAND", "TOKENS", "LEVEL", "", "FACT"), rows))


@packet.command()
@SESSION
@WAVE
@AS_JSON
def explain(session: str | None, wave: int | None, as_json: bool) -> None:
    """Say of every fact why it was kept, shortened or dropped."""
    from cockpit.orient import fact_arrays
    from cockpit.orient.explain_packet import Explained
    from cockpit.orient.explain_packet import explain as explained

    def read(connection: sqlite3.Connection) -> tuple[Explained, ...]:
        at, stored = _pick(connection, session, wave)
        made = stored.packet
        profile = profiles.load(connection, made.profile_id, made.profile_version)
        known = fact_arrays.read(connection, at.session_id, at.ordinal)
        return explained(known, profile, at.ordinal, algorithm=made.algorithm)

    told = read_store(read)
    show_list(
        as_json,
        [asdict(fact) for fact in told],
        ("VERDICT", "REASON", "BAND", "LEVEL", "TOKENS", "SCORE", "WAVE", "FACT"),
        [
            (
                fact.verdict,
                fact.reason,
                fact.band,
                fact.level or "–",
                f"{fact.tokens:,}",
                f"{fact.utility:,}",
                str(fact.ordinal),
                fact.source_ref,
            )
            for fact in told
        ],
        "The wave knew nothing.",
    )


@packet.command()
@SESSION
@WAVE
@click.option("--all", "everything", is_flag=True, help="Every packet of every session.")
@AS_JSON
@click.pass_context
def verify(
    ctx: click.Context, /, session: str | None, wave: int | None, everything: bool, as_json: bool
) -> None:
    """Compile again from the stored facts and compare; without --wave, every packet of a session."""
    from cockpit.orient.verify_packet import verify as verified

    if everything and (session is not None or wave is not None):
        raise click.UsageError("--all is every packet: it goes with neither --session nor --wave.")

    def read(connection: sqlite3.Connection) -> list[str]:
        if everything:
            return packets.select_wave_ids(connection)
        session_id = choose_session(connection, session)
        if wave is not None:
            return [_pick(connection, session, wave)[0].wave_id]
        return [stored.wave_id for stored in packets.select_for_session(connection, session_id)]

    named = read_store(read)
    with open_store(find_project()) as store:
        outcomes = [verified(store, wave_id) for wave_id in named]
    if as_json:
        show_json(
            [
                {
                    "wave_id": outcome.wave_id,
                    "ok": outcome.ok,
                    "digest": outcome.digest,
                    "recompiled": outcome.recompiled,
                }
                for outcome in outcomes
            ]
        )
    for outcome in outcomes if not as_json else ():
        show(f"{'ok    ' if outcome.ok else 'broken'}  {outcome.wave_id}  {outcome.words}")
    if not outcomes:
        say(f"The {'project' if everything else 'session'} has no packet yet.")
    if not all(outcome.ok for outcome in outcomes):
        ctx.exit(Exit.FAILED)


@packet.command()
@SESSION
@WAVE
@click.option("--since", type=click.IntRange(min=1), metavar="N", help="Compare with wave N.")
@AS_JSON
def diff(session: str | None, wave: int | None, since: int | None, as_json: bool) -> None:
    """Say what came into a packet and what went since the wave before, or since --since."""
    from cockpit.orient.packet_diff import diff as difference

    def read(connection: sqlite3.Connection) -> tuple[Packet, Packet, dict[str, str]]:
        at, after = _pick(connection, session, wave)
        earlier = since if since is not None else at.ordinal - 1
        if earlier < 1:
            raise NotFound(f"Wave {at.ordinal} is the first; there is no packet before it.")
        _, before = _pick(connection, at.session_id, earlier)
        pair = before.packet, after.packet
        held = {entry.fact_id for made in pair for _, entry in made.rendered()}
        texts = facts.load_texts(connection, sorted(held))
        return *pair, {identity: text.source_ref for identity, text in texts.items()}

    before, after, refs = read_store(read)
    change = difference(before, after)
    lines = [("−", "removed", band, entry, "") for band, entry in change.removed]
    lines += [("+", "added", band, entry, "") for band, entry in change.added]
    lines += [
        (
            "~",
            "changed",
            seen.band_after,
            seen.after,
            f"was {seen.before.level} in {seen.band_before}",
        )
        for seen in change.changed
    ]
    show_list(
        as_json,
        [
            {
                "change": word,
                "fact_id": entry.fact_id,
                "source_ref": refs[entry.fact_id],
                "band": band,
                "level": entry.level,
                "tokens": entry.tokens,
                "note": note,
            }
            for _, word, band, entry, note in lines
        ],
        ("", "BAND", "LEVEL", "TOKENS", "FACT"),
        [
            (sign, band, entry.level, f"{entry.tokens:,}", f"{refs[entry.fact_id]}  {note}")
            for sign, _, band, entry, note in lines
        ],
        f"Waves {before.ordinal} and {after.ordinal} know the same.",
    )


@packet.command()
@click.argument("fact")
@SESSION
@AS_JSON
def pin(fact: str, session: str | None, as_json: bool) -> None:
    """Keep FACT (its id, or the name under which it is listed) in every packet from the next wave on."""
    _keep(pins.pin, fact, session, as_json)


@packet.command()
@click.argument("fact")
@SESSION
@AS_JSON
def unpin(fact: str, session: str | None, as_json: bool) -> None:
    """Let FACT be chosen or dropped by its worth again, from the next wave on."""
    _keep(pins.unpin, fact, session, as_json)


def _keep(
    change: Callable[[Tx, str, str], Pin], fact: str, session: str | None, as_json: bool
) -> None:
    def step(tx: Tx) -> Pin:
        session_id = choose_session(tx.connection, session)
        return change(tx, session_id, pins.find_fact_id(tx.connection, session_id, fact))

    with open_store(find_project()) as store:
        made = store.write_now(step)
    if as_json:
        show_json(asdict(made))
        return
    how = "stays in every packet" if made.pinned else "is chosen by its worth again"
    show(f"{made.source_ref} {how}, from wave {made.ordinal} on.")


def _list(session: str | None, as_json: bool) -> None:
    found = read_store(_session(session))
    show_list(
        as_json,
        [
            {
                "packet_id": stored.packet_id,
                "wave_id": stored.wave_id,
                "digest": stored.digest,
                "token_used": stored.packet.token_used,
                "token_budget": stored.packet.token_budget,
                "facts": stored.packet.facts,
                "dropped": stored.packet.dropped,
                "bands": {band.name: band.used for band in stored.packet.bands},
            }
            for stored in found
        ],
        ("WAVE", "DIGEST", "TOKENS", "OF", "FACTS", "DROPPED", "PACKET"),
        [
            (
                str(stored.packet.ordinal),
                stored.digest[:12],
                f"{stored.packet.token_used:,}",
                f"{stored.packet.token_budget:,}",
                f"{stored.packet.facts:,}",
                f"{stored.packet.dropped:,}",
                stored.packet_id,
            )
            for stored in found
        ],
        "The session has no packet yet.",
    )


def _session(session: str | None) -> Callable[[sqlite3.Connection], list[StoredPacket]]:
    return lambda connection: packets.select_for_session(
        connection, choose_session(connection, session)
    )


def _pick(
    connection: sqlite3.Connection, session: str | None, wave: int | None
) -> tuple[Wave, StoredPacket]:
    """The wave of that number, or the newest that has a packet, and its packet."""
    session_id = choose_session(connection, session)
    if wave is None:
        found = packets.select_for_session(connection, session_id)
        if not found:
            raise NotFound(f"Session {session_id} has no packet yet.")
        return waves.load(connection, found[-1].wave_id), found[-1]
    for at in waves.select_for_session(connection, session_id):
        if at.ordinal == wave:
            return at, packets.load(connection, at.wave_id)
    raise NotFound(f"Session {session_id} has no wave {wave}.")


def _summary(made: Packet) -> str:
    drops: dict[str, Any] = dict(made.drops)
    why = ", ".join(f"{reason} {count:,}" for reason, count in drops.items() if count)
    return (
        f"{made.token_used:,} of {made.token_budget:,} tokens · {pluralize(made.facts, 'fact')} ·"
        f" {made.dropped:,} dropped{f' ({why})' if why else ''} · profile {made.profile_id}"
        f" version {made.profile_version} · {made.algorithm}"
    )


def _bands(made: Packet) -> str:
    return format_table(
        ("BAND", "USED", "FLOOR", "TARGET", "CEILING", "FACTS", "DROPPED"),
        [
            (
                band.name,
                *(f"{n:,}" for n in (band.used, band.min_tokens, band.target_tokens)),
                f"{band.max_tokens:,}",
                f"{len(band.entries):,}",
                f"{band.dropped:,}",
            )
            for band in made.bands
        ],
    )
