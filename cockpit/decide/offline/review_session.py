"""The offline rules' review session: request context, draft, propose, revise, finish.

Every answer follows from the packet alone: what was requested and granted, what was proposed, and what the
user said to it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from cockpit.decide.model import Prompt
from cockpit.decide.offline.model_answer import Answer, asking, finishing
from cockpit.decide.offline.rules.change_summary import size
from cockpit.decide.offline.rules.draft_review import Review, Wishes, review
from cockpit.decide.offline.rules.review_header import Frame, frame_of
from cockpit.decide.offline.rules.reviewed_change import Change, change_of
from cockpit.decide.offline.rules.wanted_context import Item, reasons, wanted
from cockpit.decide.offline.session_history import Step, messages_since, read_history, steps_calling
from cockpit.decide.offline.understand_discussion import (
    CONTEXT_HELP,
    OTHER_TASKS,
    REVIEW_HELP,
    narrow,
    wish,
    wished,
)

FOLDER = ".cockpit/reviews"

_FLAGS = {"approve": "--approve", "request changes": "--request-changes", "comment": "--comment"}
_OWN = re.compile(r"your own pull request", re.IGNORECASE)
_EXISTS = re.compile(r"exists, and nothing of it is in your context")
_OVERTAKEN = re.compile(r"changed (?:while it was written|on disk since it was shown)")
_ON_MIND = "You would like to discuss this first. What is on your mind?"


def answer_review(prompt: Prompt) -> Answer:
    """Return the next step of a ``review_pr`` session."""
    steps = read_history(prompt)
    change, frame = change_of(prompt.facts), frame_of(prompt.facts)
    if not change.files:
        return finishing(
            "blocked", "There is no diff in my context, so there is nothing that rules can review."
        )
    if steps and steps[-1].status == "said" and not steps[-1].replies:
        return finishing("blocked", f"I asked, and got no answer: {_short(steps[-1].text)}")
    actions = steps_calling(steps, "github", "write_file")
    if actions:
        return _after_action(prompt, change, frame, steps, actions)
    requests = steps_calling(steps, "request_context")
    if requests:
        return _after_request(prompt, change, frame, steps, requests)
    items = wanted(_at_first(prompt), prompt.target)
    if not items:
        return _propose(prompt, change, frame, Wishes(), "The diff says all that I can use.")
    return _ask(frame, items, f"I have read the diff of {frame.subject} ({size(change)}).")


def _at_first(prompt: Prompt) -> Change:
    """The change as the first wave showed it: what the first request was made from."""
    first = [
        fact
        for fact in prompt.facts
        if fact.source_type == "task" or (fact.source_type == "diff" and fact.ordinal <= 1)
    ]
    return change_of(first)


def _ask(frame: Frame, items: Sequence[Item], lead: str) -> Answer:
    count = "one thing" if len(items) == 1 else f"{len(items)} things"
    sorts = {item.sort for item in items}
    questions = [
        words
        for sort, words in (
            ("diff", "what is in the part of the diff that was cut"),
            ("callers", "whether anything outside of the diff still relies on what changed"),
            ("code", "whether the changed code holds together with what is around it"),
            ("tests", "which tests cover it"),
        )
        if sort in sorts
    ]
    about = f"“{frame.title}”" if frame.title else frame.subject
    return asking(
        f"{lead} Before I judge it I would like to see {count}:\n\n{reasons(items)}",
        purpose=f"Review {frame.subject}: {about}",
        question=f"I want to know {', and '.join(questions)}.",
        scope=[item.scope for item in items],
        escalation=(
            "I will not ask for more. What stays unclear becomes a question in the review."
        ),
    )


def _after_request(
    prompt: Prompt, change: Change, frame: Frame, steps: Sequence[Step], requests: Sequence[Step]
) -> Answer:
    last = requests[-1]
    if last.status == "discussed":
        return _discussed_request(prompt, change, frame, steps, requests)
    lead = {
        "approved": "Thank you, that is what I needed.",
        "fetched": "Thank you, that is what I needed.",
        "narrowed": "I have what you granted; the review says what I did not see.",
        "rejected": "I go by the diff alone, then.",
        "expired": "My request got no answer; I go by the diff alone.",
    }.get(last.status, "That could not be read; I go by what I have.")
    return _propose(prompt, change, frame, Wishes(), lead)


def _discussed_request(
    prompt: Prompt, change: Change, frame: Frame, steps: Sequence[Step], requests: Sequence[Step]
) -> Answer:
    """Apply every message about the request, from the first one on."""
    messages = messages_since(steps, requests[0])
    if requests[-1].silent and not messages_since(steps, requests[-1]):
        return Answer(_ON_MIND)
    items, reply, understood, why = wanted(_at_first(prompt), prompt.target), "", False, False
    for words in messages:
        narrowed = narrow(items, words)
        items, reply = narrowed.items, narrowed.answer or reply
        understood, why = narrowed.understood, narrowed.why
    quoted = f"You said “{_short(messages[-1])}”." if messages else ""
    if why:
        return Answer(
            f"{quoted} Each item has its reason:\n\n{reasons(items)}\n\nShall I leave one out?"
        )
    if not understood:
        return Answer(f"{quoted} I am rules, not a model, and do not follow. {CONTEXT_HELP}")
    if not items:
        return _propose(prompt, change, frame, Wishes(), f"{quoted} {reply}")
    return _ask(frame, items, f"{quoted} {reply}")


def _after_action(
    prompt: Prompt, change: Change, frame: Frame, steps: Sequence[Step], actions: Sequence[Step]
) -> Answer:
    last = actions[-1]
    wishes, change_text, understood = _wishes(steps, actions)
    messages = messages_since(steps, actions[0])
    later = messages_since(steps, last)
    if last.status == "confirmed" and not later:
        return finishing("done", _done(prompt, last))
    if last.status == "discussed" and last.silent and not later:
        return Answer(_ON_MIND)
    if later:
        quoted = f"You said “{_short(messages[-1])}”."
        if not understood:
            return Answer(
                f"{quoted} I am rules, not a model, and do not follow. {REVIEW_HELP} {OTHER_TASKS}"
            )
        return _propose(prompt, change, frame, wishes, f"{quoted} I {change_text}.", actions)
    if last.status == "rejected":
        return finishing("blocked", f"The review was not posted. {last.result}".strip())
    if _is_taken(last):
        lead = "A review of that name is there already; I write beside it."
        return _propose(prompt, change, frame, wishes, lead, actions)
    if _OWN.search(last.result) and wishes.verdict != "comment":
        lead = "GitHub takes no verdict on one's own pull request, so I make it a comment."
        own = wish(wishes, "comment")
        return _propose(prompt, change, frame, own, lead, actions)
    return finishing("blocked", f"The review did not go out ({last.status}): {_short(last.result)}")


def _wishes(steps: Sequence[Step], actions: Sequence[Step]) -> tuple[Wishes, str, bool]:
    """Return all wishes so far, what the last message changed, and whether it was understood."""
    wishes, change_text, understood = Wishes(), "", False
    for words in messages_since(steps, actions[0]):
        after = wish(wishes, words)
        change_text, understood = wished(wishes, after), after != wishes
        wishes = after
    return wishes, change_text, understood


def _propose(
    prompt: Prompt,
    change: Change,
    frame: Frame,
    wishes: Wishes,
    lead: str,
    before: Sequence[Step] = (),
) -> Answer:
    drafted = review(change, frame, wishes)
    counts = ", ".join(
        f"{count} {word}{'' if count == 1 else 's'}"
        for count, word in (
            (drafted.blocking, "thing that blocks"),
            (drafted.questions, "question"),
            (drafted.nits, "nit"),
        )
        if count
    ).replace("thing that blockss", "things that block")
    words = f"{lead} My verdict by offline rules: {drafted.verdict} ({counts or 'no remarks'})."
    if "pr" in prompt.target:
        words += " Here is the review as it would be posted."
        return Answer(words, (("github", {"command": _command(prompt.target, drafted)}),))
    path = _path(prompt.target, before)
    words += f" I would keep it as `{path}`."
    text = f"# Review of {frame.subject}\n\n{_ids(prompt.target)}{drafted.text}"
    return Answer(words, (("write_file", {"path": path, "content": text}),))


def _command(target: Mapping[str, Any], drafted: Review) -> str:
    words = ["gh", "pr", "review", str(target["pr"])]
    if target.get("repo"):
        words += ["--repo", str(target["repo"])]
    return shlex.join([*words, _FLAGS[drafted.verdict], "--body", drafted.text])


def _path(target: Mapping[str, Any], before: Sequence[Step]) -> str:
    """A file of its own: one that is there already, and was not written here, is not replaced."""
    name = slug(str(target.get("range", "change")))
    taken = sum(1 for step in before if _is_taken(step))
    return f"{FOLDER}/{name}{f'-{taken + 1}' if taken else ''}.md"


def _is_taken(step: Step) -> bool:
    """Whether somebody else's file has the name: it was there, or came before this one was written."""
    words = {"refused": _EXISTS, "failed_terminal": _OVERTAKEN}.get(step.status)
    return step.call == "write_file" and words is not None and bool(words.search(step.result))


def slug(spelled: str) -> str:
    """A range as a file name: letters, digits, dots, ``-`` and ``_`` only, and no hidden file."""
    name = re.sub(r"[^\w.-]+", "-", spelled, flags=re.ASCII).strip("-")
    return re.sub(r"\A\.+", "HEAD..", name)[:80] or "change"


def _ids(target: Mapping[str, Any]) -> str:
    base, tip = target.get("base"), target.get("tip")
    return f"From `{base}` to `{tip}`.\n\n" if base and tip else ""


def _done(prompt: Prompt, last: Step) -> str:
    if last.call == "github":
        verdict = next((word for word, flag in _FLAGS.items() if flag in str(last.arguments)), "")
        return f"The review of PR #{prompt.target.get('pr')} is posted ({verdict})."
    return f"The review is written to {last.arguments.get('path', FOLDER)}."


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:159] + "…"
