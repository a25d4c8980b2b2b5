"""Details of sessions, their messages and the events that start their waves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, UnsetType

from cockpit.store.journal.details.detail import Detail


class SessionCreated(Detail, frozen=True, kw_only=True):
    """A session was created: the conversation with one agent begins."""

    task_type: str
    """The task type, for example ``review_pr``."""
    title: str
    """A short title for lists."""
    words: str
    """The text with which the user opened the session."""
    target: Mapping[str, Any]
    """The pull request, issue or files of the task, for example ``{"pr": 24}``."""
    model: str
    """The model's full name; ``runner:NAME`` for an external agent."""
    policy: str
    """The approval policy: ``ask`` (nothing), ``reads`` (context requests) or
    ``all`` (everything but writes to GitHub and high risk)."""
    project: str
    """The name of the project's folder."""
    branch: str
    """The git branch at that moment."""
    interactive: bool
    """Whether a user is present; a headless session stops instead of waiting."""
    role: str
    """The role in a task's run, for example ``implementer``; empty outside one."""
    task_id: str | None
    """The backlog task that the session works on."""
    agent: str | UnsetType = UNSET
    """The external agent that has it; absent for the built-in agent."""
    transport: str | UnsetType = UNSET
    """How cockpit reaches the external agent, for example ``acp``."""


class SessionResumed(Detail, frozen=True, kw_only=True):
    """A process took the session's lease and drives it from now on."""

    process: str
    """The process, as ``PID/START``."""


class SessionEntered(Detail, frozen=True, kw_only=True):
    """The session entered another status."""


class SessionWaiting(SessionEntered, frozen=True, kw_only=True, rename={"for_": "for"}):
    """The session waits for the user."""

    for_: str | UnsetType = UNSET
    """``proposal``: a proposal waits for a decision; ``person``: the user has the turn; ``expired``: the
    proposal's deadline passed; ``paused``: the machine was short of something. The session can be resumed."""
    why: str | UnsetType = UNSET
    """Why, for people to read."""


class SessionRunning(SessionEntered, frozen=True, kw_only=True):
    """The session runs again."""


class SessionCompleted(SessionEntered, frozen=True, kw_only=True):
    """The session reached its end."""

    status: str | UnsetType = UNSET
    """The status given to ``finish`` (``done``, ``blocked``), ``limit``, ``stuck`` where its calls repeated,
    or ``needs_answer`` of a headless session that ended without ``finish``."""
    summary: str | UnsetType = UNSET
    """The agent's summary or last words, or the limit that was reached."""


class SessionFailed(SessionEntered, frozen=True, kw_only=True):
    """The session failed; the row's ``error_code`` says how."""

    message: str | UnsetType = UNSET
    """The error."""


class SessionStopped(SessionEntered, frozen=True, kw_only=True):
    """The session was stopped and can be resumed."""

    reason: str | UnsetType = UNSET
    """Why it was stopped."""


class SessionChanged(Detail, frozen=True, kw_only=True):
    """Fields of the session were changed; only those that changed are there."""

    policy: str | UnsetType = UNSET
    """The approval policy from now on."""
    model: str | UnsetType = UNSET
    """The model from now on."""
    task_type: str | UnsetType = UNSET
    """The task type from now on."""
    title: str | UnsetType = UNSET
    """The title from now on."""
    target: Mapping[str, Any] | UnsetType = UNSET
    """The target from now on, as in ``session.created``."""
    limits: Mapping[str, Any] | UnsetType = UNSET
    """The session's limits from now on, for example ``{"max_waves": 12}``."""
    rev: str | UnsetType | None = UNSET
    """The git revision that context is read at."""
    interactive: bool | UnsetType = UNSET
    """Whether a user is present from now on."""


class SessionForked(Detail, frozen=True, kw_only=True):
    """The session is a fork: it begins with the messages and facts of another session up to a wave."""

    source: str
    """The session that it was forked from."""
    wave: int
    """The last wave that both sessions have in common."""
    messages: int
    """How many messages were copied."""
    facts: int
    """How many facts it shares with the other session."""
    profile_version: int
    """The profile's version in that wave; 0 for none. The fork follows the profile as it is now."""


class SessionRewound(Detail, frozen=True, kw_only=True):
    """The user went back to an earlier wave: files got their earlier contents, and this session continues."""

    source: str
    """The session that went back; it stays as it is."""
    wave: int
    """The wave after which this session continues; 0 where the user came forward again."""
    files: tuple[str, ...]
    """The files that were changed."""
    stays: tuple[str, ...]
    """The changes that could not be undone, each with its reason."""
    forward: bool = False
    """Whether the contents that going back had replaced were brought back."""


class MessageStarted(Detail, frozen=True, kw_only=True):
    """An agent's message begins to stream."""

    message_id: str
    role: str
    """Always ``agent``."""


class MessageDelta(Detail, frozen=True, kw_only=True):
    """A fragment of a streaming message; provisional, ``message.completed`` replaces it."""

    message_id: str
    text: str
    """The fragment."""
    n: int
    """The fragment's number in its message."""


class MessageCompleted(Detail, frozen=True, kw_only=True):
    """A message is complete."""

    message_id: str
    role: str
    """``person``, ``agent`` or ``notice``."""
    text: str
    """The whole message."""
    interrupted: bool
    """Whether the message was cut off before its end."""


class QueuedEvent(Detail, frozen=True, kw_only=True):
    """An event of the queue that starts waves."""

    event_id: str
    """The event's id."""
    event_type: str
    """The event's type, for example ``user.message``."""


class EventIngested(QueuedEvent, frozen=True, kw_only=True):
    """An event entered the queue, or a program sent one to those that follow the journal."""

    source: str | UnsetType = UNSET
    """Of a program's event: its namespace and its queue, as ``ns:NAMESPACE:QUEUE``."""
    payload: Mapping[str, Any] | UnsetType = UNSET
    """What a program's event carries."""
