"""The text before the first session: what this is, what is there, what to try, what to go on with.

Specified in ``docs/reference/screen.md``, welcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cockpit.loop.external_agent_interface import AgentEntry
from widgets.text.detail import DetailRow
from widgets.text.style_names import ACCENT, DIM, STRONG, WARN, Part, line
from widgets.views import WorkPaneView

_CELLS = 9
_AGENTS = 4
_REVIEWS = {"HEAD~1..HEAD": "review the last commit"}
_OFFLINE = "offline"
_TRIES = 3
_ALWAYS = (
    ("/help", "keys and commands"),
    ("cockpit demo", "a tour, in a shell"),
    ("/settings", "model, theme, keys"),
)
_WORDS = (
    ("wave", "one round of a task: observe, orient, decide, act, learn"),
    ("packet", "all that the agent gets for a wave, within a budget of tokens"),
    ("bands", "the six parts of a packet, each with a guaranteed share"),
)


def build_welcome(
    model: str,
    agents: Sequence[str] | None,
    board: WorkPaneView,
    waiting: int,
    agent: AgentEntry | None = None,
    log: Sequence[DetailRow] = (),
    *,
    is_live: bool = False,
    since: str = "",
    review: str | None = None,
    problem: str = "",
) -> tuple[DetailRow, ...]:
    """Return the rows: ``model`` is that of a new session, ``agents`` those that are installed.

    ``model`` is empty and ``agents`` None while they are not known yet. ``waiting`` is how many proposals
    wait for the user; ``agent`` the external agent that has new sessions, if there is one; ``log`` are
    the events of the newest chain, which come first while it runs (``is_live``). ``since`` says what
    happened since the screen was open last. ``review`` is a range to review, '' where there are no
    commits and None while that is not known or there is a single one; ``problem`` says why new
    sessions have no model.
    """
    head = [
        DetailRow(line(("You decide what coding agents read and do.", STRONG))),
        DetailRow(line(("⏎ approves what is in front, esc discusses it.", DIM))),
        _row(),
    ]
    how = [
        *(_models(model, problem) if agent is None else _agent(agent)),
        *_agents(agents),
        _row(),
        *_to_try(model, agents or (), agent, review),
        _row(),
    ]
    news = [_row("Since", ("you were here last: ", DIM), (since, STRONG))] if since else []
    now = [*news, *_sessions(board, waiting)]
    if log and is_live:
        return (*head, *now, _row(), *log, _row(), *how)
    rows = [*head, *how, *now]
    if log:
        rows += [_row(), *log]
    elif not board.rows:
        rows += [_row()] if now else []
        rows += [_row(name, (text, DIM)) for name, text in _WORDS]
    return tuple(rows)


def _row(name: str = "", *parts: Part) -> DetailRow:
    return DetailRow(line(*parts), line((f"{name:<{_CELLS}}", DIM)), line(" " * _CELLS))


def _models(model: str, problem: str) -> Iterator[DetailRow]:
    if problem:
        yield _row("Model", ("cannot be used. ", WARN), (problem, ""))
        yield _row("", ("/model NAME chooses another now, /settings for good.", DIM))
    elif not model:
        yield _row("Model", ("…", DIM))
    elif model.startswith(_OFFLINE):
        limits = ": rules review changes and answer no questions"
        yield _row("Model", ("none", WARN), (limits, DIM))
        yield _row("", ("Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or use /model.", DIM))
    else:
        yield _row("Model", (model, ACCENT), ("  /model changes it", DIM))


def _agent(agent: AgentEntry) -> Iterator[DetailRow]:
    if agent.is_installed:
        yield _row(
            "Agent", (agent.title, ACCENT), (" has each new session, with its own model", DIM)
        )
    else:
        yield _row("Agent", (f"{agent.title} is not installed", WARN))
        yield _row("", ("`cockpit agents` says how to install it.", DIM))


def _agents(agents: Sequence[str] | None) -> Iterator[DetailRow]:
    if agents is None:
        yield _row("Agents", ("…", DIM))
    elif agents:
        more = len(agents) - _AGENTS
        names = ", ".join(agents[:_AGENTS]) + (f" and {more} more" if more > 0 else "")
        yield _row("Agents", (names, ACCENT), ("  /agent starts one", DIM))
    else:
        yield _row("Agents", ("none installed", DIM), ("  /agent says how to install one", DIM))


def _to_try(
    model: str, agents: Sequence[str], agent: AgentEntry | None, review: str | None
) -> Iterator[DetailRow]:
    tries = (
        [(f"/review {review}", _REVIEWS.get(review, "review what you changed"))] if review else []
    )
    if review == "":
        yield _row("Git", ("no commits here: reviews and chains need some", WARN))
    if agent is not None:
        tries.append(("fix the failing …", "a task in your own words"))
    elif model and not model.startswith(_OFFLINE):
        tries.append(("explain how …", "a task in your own words"))
        tries.append(("/plan add …", "split a wish into tasks"))
    elif agents:
        tries.append(("/agent", "let your agent do a task"))
    tries = [*tries, *_ALWAYS][:_TRIES]
    for place, (text, does) in enumerate(tries):
        yield _row("" if place else "Try", (f"{text:<18} ", STRONG), (does, DIM))


def _sessions(board: WorkPaneView, waiting: int) -> Iterator[DetailRow]:
    if waiting:
        noun = "proposals wait" if waiting > 1 else "proposal waits"
        yield _row(
            "Waiting", (f"{waiting:,} {noun} for you", ACCENT), ("  alt+n shows the next one", DIM)
        )
    if board.rows:
        yield _row("Last", (board.summary, ""), ("  f6 lists and follows them", DIM))
    if board.work:
        yield _row("Backlog", (board.work, DIM), ("  ^t opens the board", DIM))
