"""The skills of a session: which are loaded, and the changes that a wave makes to them.

A skill is loaded as a fact of the capabilities band and rendered in the wave in which it came, so that the
text before it stays in the provider's cache; unloading it adds one line. See ``docs/reference/skills.md``.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence

from msgspec import Struct

from cockpit.core.canonical_json import canonical_json
from cockpit.core.skills import skill_layers
from cockpit.core.skills.shorten_skill import ROOM
from cockpit.loop.intake.task_words import read_task_words
from cockpit.loop.skills.project_skills import SOURCE, ProjectSkills
from cockpit.loop.wave_context import Engine, WaveContext
from cockpit.orient.skills.choose_skills import Choice, Scope, choose_skills
from cockpit.orient.skills.keep_skills import (
    LOADED_BY_USER,
    UNUSED_WAVES,
    LoadedSkill,
    Removal,
    find_drifted,
    find_unused,
)
from cockpit.store.context import facts
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.skills import SkillChanged
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import messages, plans, waves

_JOB = "skill:"
ASKED = "asked"
"""In place of how a skill was chosen: the agent read all of it on request."""
ASKED_WHY = "the agent asked for it"
_MOST_ACTIVITY = 8_000
"""Characters of a wave's calls that are looked at for the use of a skill."""
_RECENT_WAVES = 2


class SkillLink(Struct, frozen=True):
    """A skill that is loaded, as the session's facts have it."""

    skill: LoadedSkill
    digest: str
    """The SHA-256 of the ``SKILL.md`` that it was loaded with."""
    tokens: int


async def refresh_skills(engine: Engine) -> None:
    """Read the skills again where files changed, beside the event loop."""
    if skill_layers.ENABLED:
        await asyncio.to_thread(engine.skills.refresh)


async def list_commands(engine: Engine, words: str) -> frozenset[str]:
    """Return the names of skills where ``words`` begin with a slash: ``/git`` mentions one."""
    if not words.lstrip().startswith("/") or not engine.settings.skills_most:
        return frozenset()
    await refresh_skills(engine)
    return frozenset(engine.skills.skills)


def take_in_skills(tx: Tx, context: WaveContext) -> None:
    """Load and unload skills for the wave, which observes. Reads no files."""
    most, project_skills = context.engine.settings.skills_most, context.engine.skills
    if not skill_layers.ENABLED or not project_skills.was_read:
        return
    session_id = context.session.session_id
    present = select_skills(tx.connection, session_id)
    if not project_skills.skills and not present:
        return
    wishes = read_wishes(tx.connection, session_id)
    removals = _find_gone(context, present, wishes)
    news = read_news(tx.connection, context) if most else _NO_NEWS
    mine = [name for name, wish in wishes.items() if wish.load]
    chosen: list[Choice] = []
    if news.words:
        chosen += _choose(context, news, wishes)
        removals += _find_left_behind(tx, context, present, chosen, news.words, most)
    elif most:
        removals += _find_idle(tx, context, present)
    chosen += [
        Choice(name, LOADED_BY_USER, wishes[name].why)
        for name in mine
        if name in project_skills.skills
    ]
    gone = {removal.name for removal in removals} - set(mine)
    for link in present:
        if link.skill.name in gone:
            removal = next(each for each in removals if each.name == link.skill.name)
            unload_skill(tx, context.wave, link, removal)
    stays = [link for link in present if link.skill.name not in gone]
    record_skills(tx, context.engine, context.wave, list_new(project_skills, chosen, stays), stays)
    name_skill(tx, context.engine, context.wave, chosen, stays)


def select_skills(connection: sqlite3.Connection, session_id: str) -> list[SkillLink]:
    """Read the skills that the session has loaded, by name."""
    rows = connection.execute(
        "SELECT substr(s.dedupe_key, 7), s.job, s.ordinal, s.cost_full,"
        " json_extract(o.provenance_json, '$.sha256')"
        " FROM session_facts AS s LEFT JOIN observed_facts AS o USING(fact_id) WHERE s.session_id=?"
        " AND s.dedupe_key <> '' AND s.dedupe_key > 'skill:' AND s.dedupe_key < 'skill;'"
        " AND s.superseded_at IS NULL"
        " AND s.source_type=? ORDER BY s.dedupe_key",
        (session_id, SOURCE),
    )
    return [
        SkillLink(LoadedSkill(name, _read_how(job), ordinal), str(digest or ""), tokens)
        for name, job, ordinal, tokens, digest in rows
    ]


def select_asked(connection: sqlite3.Connection, session_id: str) -> list[tuple[str, int]]:
    """Read the skills that the agent read in whole on request, as (source, wave), those that are gone too."""
    rows = connection.execute(
        "SELECT source_ref, ordinal, job FROM session_facts WHERE session_id=? AND dedupe_key <> ''"
        " AND dedupe_key > 'skill:' AND dedupe_key < 'skill;' AND source_type=?",
        (session_id, SOURCE),
    )
    return [(ref, ordinal) for ref, ordinal, job in rows if _read_how(job) == ASKED]


def _read_how(job: str) -> str:
    return job.removeprefix(_JOB) or "match" if job.startswith(_JOB) else ASKED


class Wish(Struct, frozen=True):
    """The user's last word on a skill in a session."""

    load: bool
    at: str
    why: str


def read_wishes(connection: sqlite3.Connection, session_id: str) -> dict[str, Wish]:
    """Read what the user loads and unloads by key, by skill; the last word counts.

    A mention that loaded the skill later is a later word.
    """
    wishes: dict[str, Wish] = {}
    rows = connection.execute(
        "SELECT seq, at, json_extract(detail_json,'$.name'),"
        " json_extract(detail_json,'$.status')='wanted', json_extract(detail_json,'$.why')"
        " FROM journal WHERE action=? AND +session_id=?"
        " AND json_extract(detail_json,'$.status') IN ('wanted','unwanted') ORDER BY seq",
        (str(Action.SKILL_CHANGED), session_id),
    ).fetchall()
    if not rows:
        return wishes
    mentions = connection.execute(
        "SELECT json_extract(detail_json,'$.name'), max(seq) FROM journal WHERE action=? AND"
        " +session_id=? AND json_extract(detail_json,'$.status')='loaded'"
        " AND json_extract(detail_json,'$.how')='mention' GROUP BY 1",
        (str(Action.SKILL_CHANGED), session_id),
    )
    mentioned = dict(mentions.fetchall())
    for seq, at, name, load, why in rows:
        wishes.pop(str(name), None)
        if seq > mentioned.get(name, 0):
            wishes[str(name)] = Wish(bool(load), str(at), str(why or "you loaded it"))
    return wishes


def want_skill(tx: Tx, session_id: str, name: str, *, load: bool, why: str = "") -> None:
    """Record that the user loads or unloads a skill in a session, from its next wave on."""
    wish = SkillChanged(name=name, status="wanted" if load else "unwanted", why=why)
    tx.journal(wish, session_id=session_id, actor="person")


def scope_of(engine: Engine, task_type: str) -> Scope:
    """Return which skills a task type allows."""
    kind = engine.task_types.get(task_type)
    lists = () if kind is None else (kind.skills, kind.project_skills)
    return Scope(tuple(patterns for patterns in lists if patterns))


class News(Struct, frozen=True):
    """What the user wrote since the wave before, and when the last of it."""

    words: str = ""
    at: str = ""


_NO_NEWS = News()


def _choose(context: WaveContext, news: News, wishes: Mapping[str, Wish]) -> tuple[Choice, ...]:
    return choose_for(
        context.engine,
        news.words,
        wishes,
        task_type=context.session.task_type,
        is_first=context.wave.ordinal == 1,
        at=news.at,
    )


def choose_for(
    engine: Engine,
    words: str,
    wishes: Mapping[str, Wish],
    *,
    task_type: str,
    is_first: bool,
    at: str,
) -> tuple[Choice, ...]:
    """Choose the skills for ``words`` of a session that were written ``at`` that time.

    ``is_first``: they begin the task, so that its type chooses too.
    """
    project_skills = engine.skills
    return choose_skills(
        project_skills.skills,
        project_skills.index,
        words,
        task_type=task_type if is_first else "",
        scope=scope_of(engine, task_type),
        most=engine.settings.skills_most,
        never=list(wishes),
        unloaded=[name for name, wish in wishes.items() if not wish.load and wish.at >= at],
        vectors=project_skills.nearness(words),
    )


def read_news(connection: sqlite3.Connection, context: WaveContext) -> News:
    """Return the task in a session's first wave, and new messages in later ones."""
    session = context.session
    sent = messages.select_for_session(connection, session.session_id, role="person")
    if context.wave.ordinal == 1:
        words = read_task_words(connection, session)
        return News(words, sent[0].created_at if sent else "")
    if len(sent) <= 1:
        return _NO_NEWS
    (before,) = connection.execute(
        "SELECT count(DISTINCT source_ref) FROM session_facts WHERE session_id=? AND ordinal<?"
        " AND source_type='person'",
        (session.session_id, context.wave.ordinal),
    ).fetchone()
    new = sent[1 + before :]
    return News("\n".join(message.text for message in new), new[-1].created_at if new else "")


def _find_gone(
    context: WaveContext, links: Sequence[SkillLink], wishes: Mapping[str, Wish]
) -> list[Removal]:
    """Return the skills that the user unloads, and those that exist no longer or are not trusted."""
    removals = []
    for link in links:
        name = link.skill.name
        if name not in context.engine.skills.skills:
            removals.append(Removal(name, "gone", "it was removed, or its content is not trusted"))
        elif name in wishes and not wishes[name].load:
            removals.append(Removal(name, "user", "you unloaded it"))
    return removals


def _find_left_behind(
    tx: Tx,
    context: WaveContext,
    links: Sequence[SkillLink],
    chosen: Sequence[Choice],
    words: str,
    most: int,
) -> tuple[Removal, ...]:
    if context.wave.ordinal == 1 or not links or not chosen:
        return ()
    loaded = [link.skill for link in links]
    recent = _read_activity(tx, context, _RECENT_WAVES)
    skills = context.engine.skills.skills
    unused = {
        removal.name
        for removal in find_unused(
            [LoadedSkill(skill.name, skill.how, 0) for skill in loaded],
            skills,
            UNUSED_WAVES,
            recent,
        )
    }
    used = frozenset(skill.name for skill in loaded) - unused
    index = context.engine.skills.index
    return find_drifted(loaded, chosen, index, words, most=most, recently_used=used)


def _find_idle(tx: Tx, context: WaveContext, links: Sequence[SkillLink]) -> tuple[Removal, ...]:
    """Return what the last waves did not use; looked at in every sixth wave of a skill."""
    ordinal = context.wave.ordinal
    due = [
        link.skill
        for link in links
        if ordinal > link.skill.since and (ordinal - link.skill.since) % UNUSED_WAVES == 0
    ]
    if not due:
        return ()
    activity = _read_activity(tx, context, UNUSED_WAVES)
    return find_unused(due, context.engine.skills.skills, ordinal, activity)


def _read_activity(tx: Tx, context: WaveContext, count: int) -> list[str]:
    """Return what the agent wrote and called in each of the last waves."""
    activity = []
    for ordinal in range(max(1, context.wave.ordinal - count), context.wave.ordinal):
        plan = plans.find(tx.connection, waves.wave_id_of(context.session.session_id, ordinal))
        if plan is not None:
            calls = canonical_json([[call["name"], call["arguments"]] for call in plan.calls])
            activity.append(f"{plan.text} {calls[:_MOST_ACTIVITY]}")
    return activity


def list_new(
    project_skills: ProjectSkills, chosen: Sequence[Choice], present: Sequence[SkillLink]
) -> list[Choice]:
    """Return what is to be loaded of ``chosen``, and what is loaded and has another text by now."""
    there = {link.skill.name: link for link in present}
    first: dict[str, Choice] = {}
    for choice in chosen:
        if not choice.is_named:
            first.setdefault(choice.name, choice)
    new = [choice for name, choice in first.items() if name not in there]
    changed = [
        Choice(name, link.skill.how, "its text changed")
        for name, link in there.items()
        if link.skill.how != ASKED and project_skills.skills[name].digest != link.digest
    ]
    return [*new, *changed]


def record_skills(
    tx: Tx,
    engine: Engine,
    wave: waves.Wave,
    choices: Sequence[Choice],
    present: Sequence[SkillLink],
) -> None:
    """Load skills in the session of ``wave``, each whole where it fits beside those that are ``present``."""
    names = [choice.name for choice in choices]
    room = ROOM - sum(link.tokens for link in present if link.skill.name not in names)
    rooms = engine.skills.share_room(names, room)
    for choice in choices:
        _record_skill(tx, engine, wave, choice, rooms[choice.name])


def _record_skill(tx: Tx, engine: Engine, wave: waves.Wave, choice: Choice, room: int) -> None:
    """Load a skill; it supersedes the text that it had in the session."""
    skill, fact = engine.skills.skills[choice.name], engine.skills.fact(choice.name, room)
    facts.record(
        tx,
        session_id=wave.session_id,
        wave_id=wave.wave_id,
        ordinal=wave.ordinal,
        pinned_now=wave.pinned_now,
        facts=[fact],
        job=f"{_JOB}{choice.how}",
    )
    detail = SkillChanged(
        name=skill.name,
        status="loaded",
        layer=skill.layer,
        how=choice.how,
        why=choice.why,
        ordinal=wave.ordinal,
        tokens=fact.cost.full,
        digest=skill.digest,
    )
    _journal(tx, wave, detail)


def name_skill(
    tx: Tx, engine: Engine, wave: waves.Wave, chosen: Sequence[Choice], present: Sequence[SkillLink]
) -> None:
    """Tell the user which skill is nearest of those that may fit and are not loaded.

    The agent is not told: what is offered is taken.
    """
    there = {link.skill.name for link in present}
    nearest = next((each for each in chosen if each.is_named and each.name not in there), None)
    if nearest is not None and nearest.name not in read_named(tx.connection, wave.session_id):
        layer = engine.skills.skills[nearest.name].layer
        detail = SkillChanged(
            name=nearest.name, status="named", layer=layer, why=nearest.why, ordinal=wave.ordinal
        )
        _journal(tx, wave, detail)


def read_named(connection: sqlite3.Connection, session_id: str) -> dict[str, str]:
    """Read why skills were named for a session and not loaded, by name; they may be loaded by now."""
    rows = connection.execute(
        "SELECT json_extract(detail_json,'$.name'), json_extract(detail_json,'$.why') FROM journal"
        " WHERE action=? AND +session_id=? AND json_extract(detail_json,'$.status')='named' ORDER BY seq",
        (str(Action.SKILL_CHANGED), session_id),
    )
    return {str(name): str(why) for name, why in rows}


def _journal(tx: Tx, wave: waves.Wave, detail: SkillChanged) -> None:
    tx.journal(
        detail,
        session_id=wave.session_id,
        wave_id=wave.wave_id,
        trace_id=wave.trace_id,
        packet_id=wave.packet_id,
        actor="engine",
    )


def unload_skill(tx: Tx, wave: waves.Wave, link: SkillLink, removal: Removal) -> None:
    """Take a loaded skill out of the session of ``wave``, and say why."""
    tx.execute(
        "UPDATE session_facts SET superseded_at=? WHERE session_id=? AND dedupe_key <> ''"
        " AND dedupe_key=? AND superseded_at IS NULL",
        (wave.ordinal, wave.session_id, f"{_JOB}{link.skill.name}"),
    )
    detail = SkillChanged(
        name=removal.name,
        status="unloaded",
        how=removal.how,
        why=removal.why,
        ordinal=wave.ordinal,
    )
    _journal(tx, wave, detail)
