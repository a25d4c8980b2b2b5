"""``cockpit packet`` and ``cockpit debug packet``: show, explain, verify and compare packets; pin facts."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import click
from msgspec import to_builtins

from cockpit.cli_options import AS_JSON, examples
from cockpit.collections.choose_session import choose_session
from cockpit.collections.packets import COLLECTION, PacketRow
from cockpit.commands.collection_groups import format_parts, make_group
from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import (
    find_project,
    load_project_settings,
    open_project_runtime,
    open_store,
    read_store,
)
from cockpit.commands.terminal import say, show, show_json, show_list
from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import NotFound
from cockpit.decide.model import Prompt
from cockpit.loop.views.prompt_cost import read_prompt_cost
from cockpit.store.context import facts, packets, pins
from cockpit.store.context.packets import Packet, StoredPacket
from cockpit.store.context.pins import Pin
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import waves
from cockpit.store.sessions.waves import Wave

SESSION = click.option("--session", metavar="ID", help="Use this session. Default: the last one.")
WAVE = click.option(
    "--wave",
    type=click.IntRange(min=1),
    metavar="N",
    help="Use wave number N of the session. Default: the newest.",
)


def _document(row: PacketRow, as_prompt: bool, **_: Any) -> dict[str, Any]:
    if not as_prompt:
        shown: dict[str, Any] = COLLECTION.show_row(row)
        return shown
    stored, (prompt, is_same) = row.stored, _render(row.stored)
    return {
        "wave_id": stored.wave_id,
        **row.cost.body(),
        "token_budget": stored.packet.token_budget,
        "max_output_tokens": prompt.max_output_tokens,
        "as_sent": is_same,
        "system": prompt.system,
        "messages": [to_builtins(message) for message in prompt.messages],
        "tools": [to_builtins(tool) for tool in prompt.tools],
    }


def _describe(row: PacketRow, as_prompt: bool, **_: Any) -> str:
    return _describe_prompt(row) if as_prompt else format_parts(COLLECTION.describe(row))


packet = make_group(
    COLLECTION,
    details=[
        click.option("--prompt", "as_prompt", is_flag=True, help="Print what the model was sent.")
    ],
    describe=_describe,
    document=_document,
)


@click.group(
    "packet",
    short_help="Explain, verify and compare packets.",
    epilog=examples("cockpit debug packet explain --wave 2", "cockpit debug packet verify --all"),
)
def packet_checks() -> None:
    """Explain, verify and compare orientation packets, which compile to the same digest again."""


@packet_checks.command(epilog=examples("cockpit debug packet explain --wave 2"))
@SESSION
@WAVE
@AS_JSON
def explain(session: str | None, wave: int | None, as_json: bool) -> None:
    """Explain why each fact was kept or dropped.

    Before the facts it says whether the wave appended to its epoch or began one and why, and how much of
    the prompt the provider's cache had, and why the wave went back to Orient, where it did.
    """
    from cockpit.loop.views.packet_inspection import find_return, name_skill_reasons
    from cockpit.orient.explain_packet import FactVerdict, explain_stored

    def read(connection: sqlite3.Connection) -> tuple[tuple[FactVerdict, ...], str]:
        wave_record, stored = _pick(connection, session, wave)
        verdicts = explain_stored(connection, wave_record.session_id, stored.packet)
        verdicts = name_skill_reasons(connection, wave_record.session_id, verdicts)
        words = read_prompt_cost(connection, stored).words
        returns = find_return(connection, wave_record.wave_id)
        return verdicts, f"{words}\nIt goes {returns}." if returns else words

    explanations, words = read_store(read)
    if not as_json:
        show(f"{words}\n")
    show_list(
        as_json,
        [to_builtins(fact) for fact in explanations],
        ("VERDICT", "REASON", "STANDING", "BAND", "LEVEL", "TOKENS", "SCORE", "WAVE", "FACT"),
        [
            (
                fact.verdict,
                fact.reason,
                fact.standing or "–",
                fact.band,
                fact.level or "–",
                f"{fact.tokens:,}",
                f"{fact.utility:,}",
                str(fact.ordinal),
                fact.source_ref,
            )
            for fact in explanations
        ],
        "The packet has no facts.",
    )


@packet_checks.command(
    epilog=examples("cockpit debug packet verify", "cockpit debug packet verify --all")
)
@SESSION
@WAVE
@click.option("--all", "everything", is_flag=True, help="Verify every packet of every session.")
@AS_JSON
@click.pass_context
def verify(
    ctx: click.Context, /, session: str | None, wave: int | None, everything: bool, as_json: bool
) -> None:
    """Recompile packets and compare their digests.

    Without --wave it verifies every packet of the session. It ends with 1 if a digest differs.
    """
    from cockpit.orient.verify_packet import verify_packet as verified

    if everything and (session is not None or wave is not None):
        raise click.UsageError("--all excludes --session and --wave.")

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
        say(f"The {'project' if everything else 'session'} has no packets yet.")
    if not all(outcome.ok for outcome in outcomes):
        ctx.exit(Exit.FAILED)


@packet_checks.command(
    epilog=examples("cockpit debug packet diff", "cockpit debug packet diff --wave 5 --since 2")
)
@SESSION
@WAVE
@click.option(
    "--since",
    type=click.IntRange(min=1),
    metavar="N",
    help="Compare with wave N. Default: the wave before.",
)
@AS_JSON
def diff(session: str | None, wave: int | None, since: int | None, as_json: bool) -> None:
    """Compare two packets of a session."""
    from cockpit.orient.diff_packets import diff_packets as difference

    def read(connection: sqlite3.Connection) -> tuple[Packet, Packet, dict[str, str]]:
        wave_record, after = _pick(connection, session, wave)
        earlier = since if since is not None else wave_record.ordinal - 1
        if earlier < 1:
            raise NotFound(
                f"Wave {wave_record.ordinal} is the first; there is no packet before it."
            )
        _, before = _pick(connection, wave_record.session_id, earlier)
        pair = before.packet, after.packet
        fact_ids = {entry.fact_id for compiled in pair for _, entry in compiled.rendered()}
        texts = facts.load_texts(connection, sorted(fact_ids))
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
        f"The packets of waves {before.ordinal} and {after.ordinal} have the same facts.",
    )


@packet.command(
    epilog=examples(
        "cockpit packet pin file:src/auth.py", "cockpit packet pin file:src/auth.py --off"
    )
)
@click.argument("fact")
@click.option("--off", is_flag=True, help="Let its score decide again whether it is in a packet.")
@SESSION
@AS_JSON
def pin(fact: str, off: bool, session: str | None, as_json: bool) -> None:
    """Keep a fact in every packet.

    It applies from the next wave of the session. FACT is an id, or a name that `cockpit debug packet explain`
    lists.
    """

    def step(tx: Tx) -> Pin:
        session_id = choose_session(tx.connection, session)
        fact_id = pins.find_fact_id(tx.connection, session_id, fact)
        return (pins.unpin if off else pins.pin)(tx, session_id, fact_id)

    with open_store(find_project()) as store:
        kept = store.write_now(step)
    if as_json:
        show_json(to_builtins(kept))
        return
    how = "is pinned" if kept.pinned else "is no longer pinned"
    show(f"{kept.source_ref} {how} from wave {kept.ordinal} on.")


def _render(stored: StoredPacket) -> tuple[Prompt, bool]:
    """Return the prompt of a packet, and whether it is byte for byte what was sent."""
    from cockpit.decide.measure_prompt import digest_prompt

    place = find_project()
    settings = load_project_settings(place)

    async def render() -> tuple[Prompt, Packet]:
        async with open_project_runtime(place, settings.runtime) as runtime:
            return await runtime.rendered_prompt(stored.wave_id)

    prompt, compiled = asyncio.run(render())
    rendering = compiled.rendering
    return prompt, rendering is not None and rendering.prompt_sha256 == digest_prompt(prompt)


def _describe_prompt(row: PacketRow) -> str:
    compiled = row.stored.packet
    prompt, is_same = _render(row.stored)
    if not is_same:
        say(
            "This is not byte for byte what was sent: the tools of the session or the program changed"
            " since, or an older version of cockpit sent it."
        )
    lines = [f"── system\n{prompt.system}"]
    for message in prompt.messages:
        lines += [
            f"\n── thinking\n{block.text or '(encrypted by the provider)'}"
            for block in message.thinking
        ]
        call_id = f" {message.call_id}" if message.call_id else ""
        lines.append(f"\n── {message.role}{call_id}\n{message.text}")
        lines += [f"→ {call.name} {call.arguments}" for call in message.calls]
    lines.append("\n── tools")
    lines += [
        f"{tool.name}: {tool.description}\n{canonical_json(dict(tool.parameters))}"
        for tool in prompt.tools
    ]
    if compiled.rendered_tokens is not None:
        say(
            f"{compiled.rendered_tokens:,} tokens, and {prompt.max_output_tokens:,} for the answer, of"
            f" {compiled.token_budget:,}. {row.cost.words}"
        )
    return "\n".join(lines)


def _pick(
    connection: sqlite3.Connection, session: str | None, wave: int | None
) -> tuple[Wave, StoredPacket]:
    """Return the wave with this number, or the newest with a packet, and its packet."""
    session_id = choose_session(connection, session)
    if wave is None:
        stored_packets = packets.select_for_session(connection, session_id)
        if not stored_packets:
            raise NotFound(f"Session {session_id} has no packet yet.")
        return waves.load(connection, stored_packets[-1].wave_id), stored_packets[-1]
    for wave_record in waves.select_for_session(connection, session_id):
        if wave_record.ordinal == wave:
            return wave_record, packets.load(connection, wave_record.wave_id)
    raise NotFound(f"Session {session_id} has no wave {wave}.")
