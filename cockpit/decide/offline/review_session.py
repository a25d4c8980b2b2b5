"""The offline rules' review session: request context, draft, propose, revise, finish.

Every answer follows from the packet alone: what was requested and granted, what was proposed, and what the
user said to it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from cockpit.decide.model import Prompt
from cockpit.decide.offline.model_answer import ON_MIND, Answer, asking, finishing, shorten
from cockpit.decide.offline.rules.draft_review import Wishes, review, size
from cockpit.decide.offline.rules.reviewed_change import Frame, change_of, frame_of
from cockpit.decide.offline.rules.wanted_context import Item, reasons, wanted
from cockpit.decide.offline.session_history import Step, messages_since, read_history, steps_calling
from cockpit.decide.offline.understand_discussion import (
    CONTEXT_HELP,
    REVIEW_HELP,
    asks_why,
    narrow,
    wish,
)

FOLDER = ".cockpit/reviews"

_NO_MODEL = "I am rules, not a model, and do not follow."
_OWN = re.compile(r"your own pull request", re.IGNORECASE)
_TAKEN = {
    "refused": re.compile(r"exists, and nothing of it is in your context"),
    "failed_terminal": re.compile(r"changed (?:while it was written|on disk since it was shown)"),
}


def answer_review(prompt: Prompt) -> Answer:
    """Return the next step of a ``review_pr`` session."""
    steps = read_history(prompt)
    frame = frame_of(prompt.facts)
    change = change_of(prompt.facts)
    if not change.files:
        why = "There is no diff in my context, so there is nothing that rules can review."
        return finishing("blocked", why)
    if steps and steps[-1].status == "said" and not steps[-1].replies:
        return finishing("blocked", f"I asked, and got no answer: {shorten(steps[-1].text)}")
    if actions := steps_calling(steps, "github", "write_file"):
        return _after_action(prompt, frame, steps, actions)
    # What the first request was made from: the change as the first wave showed it.
    first = [
        fact
        for fact in prompt.facts
        if fact.source_type == "task" or (fact.source_type == "diff" and fact.ordinal <= 1)
    ]
    items = wanted(change_of(first), prompt.target)
    if requests := steps_calling(steps, "request_context"):
        return _after_request(prompt, frame, steps, requests, items)
    if not items:
        return _propose(prompt, frame, Wishes(), "The diff says all that I can use.")
    return _ask(frame, items, f"I have read the diff of {frame.subject} ({size(change)}).")


def _ask(frame: Frame, items: Sequence[Item], lead: str) -> Answer:
    return asking(
        f"{lead} Before I judge it I would like to see:\n\n{reasons(items)}",
        purpose=f"Review {frame.subject}: {frame.title}",
        question="Does the change hold together with its surroundings, its callers and its tests?",
        scope=[item.scope for item in items],
        escalation="I will not ask for more. What stays unclear becomes a question in the review.",
    )


def _after_request(
    prompt: Prompt,
    frame: Frame,
    steps: Sequence[Step],
    requests: Sequence[Step],
    items: Sequence[Item],
) -> Answer:
    """Go on after a request: apply every message about it, from the first one on."""
    last = requests[-1]
    if last.status != "discussed":
        granted = last.status in ("approved", "fetched")
        lead = "Thank you." if granted else "I go by what I have; the review names the rest."
        return _propose(prompt, frame, Wishes(), lead)
    if not messages_since(steps, last):
        return Answer(ON_MIND)
    reply, message = "", ""
    for message in messages_since(steps, requests[0]):
        if not asks_why(message):
            items, reply = narrow(items, message)
    quoted = f"You said “{shorten(message)}”."
    if asks_why(message):
        return Answer(f"{quoted} The reasons:\n\n{reasons(items)}\n\nShall I leave one out?")
    if not reply:
        return Answer(f"{quoted} {_NO_MODEL} {CONTEXT_HELP}")
    if not items:
        return _propose(prompt, frame, Wishes(), f"{quoted} {reply}")
    return _ask(frame, items, f"{quoted} {reply}")


def _after_action(
    prompt: Prompt, frame: Frame, steps: Sequence[Step], actions: Sequence[Step]
) -> Answer:
    """Go on after a proposal of the review: apply every wish, from the first one on."""
    last = actions[-1]
    wishes, reply, message = Wishes(), "", ""
    for message in messages_since(steps, actions[0]):
        wishes, reply = wish(wishes, message)
    if messages_since(steps, last):
        quoted = f"You said “{shorten(message)}”."
        if not reply:
            return Answer(f"{quoted} {_NO_MODEL} {REVIEW_HELP}")
        return _propose(prompt, frame, wishes, f"{quoted} I {reply}.", actions)
    if last.status == "discussed":
        return Answer(ON_MIND)
    if last.status == "confirmed":
        posted = f"The review of PR #{prompt.target.get('pr')} is posted."
        kept = f"The review is written to {last.arguments.get('path', FOLDER)}."
        return finishing("done", posted if last.call == "github" else kept)
    if _is_taken(last):
        lead = "A review of that name is there already; I write beside it."
        return _propose(prompt, frame, wishes, lead, actions)
    if _OWN.search(last.result) and wishes.verdict != "comment":
        lead = "GitHub takes no verdict on one's own pull request, so I make it a comment."
        return _propose(prompt, frame, wish(wishes, "comment")[0], lead, actions)
    why = f"The review did not go out ({last.status}): {shorten(last.result)}"
    return finishing("blocked", why)


def _propose(
    prompt: Prompt, frame: Frame, wishes: Wishes, lead: str, before: Sequence[Step] = ()
) -> Answer:
    target = prompt.target
    drafted = review(change_of(prompt.facts), frame, wishes)
    words = f"{lead} My verdict by offline rules: {drafted.verdict} ({drafted.counts})."
    if "pr" in target:
        argv = ["gh", "pr", "review", str(target["pr"])]
        argv += ["--repo", str(target["repo"])] if target.get("repo") else []
        argv += [f"--{drafted.verdict.replace(' ', '-')}", "--body", drafted.text]
        return Answer(words, (("github", {"command": shlex.join(argv)}),))
    # A file of its own: one that is there already, and was not written here, is not replaced.
    taken = sum(map(_is_taken, before))
    name = slug(str(target.get("range", "change")))
    path = f"{FOLDER}/{name}{f'-{taken + 1}' if taken else ''}.md"
    base, tip = target.get("base"), target.get("tip")
    ids = f"From `{base}` to `{tip}`.\n\n" if base and tip else ""
    text = f"# Review of {frame.subject}\n\n{ids}{drafted.text}"
    words += f" I would keep it as `{path}`."
    return Answer(words, (("write_file", {"path": path, "content": text}),))


def _is_taken(step: Step) -> bool:
    """Whether somebody else's file has the name: it was there, or came before this one was written."""
    words = _TAKEN.get(step.status)
    return step.call == "write_file" and words is not None and bool(words.search(step.result))


def slug(spelled: str) -> str:
    """A range as a file name: letters, digits, dots, ``-`` and ``_`` only, and no hidden file."""
    name = re.sub(r"[^\w.-]+", "-", spelled, flags=re.ASCII).strip("-")
    return re.sub(r"\A\.+", "HEAD..", name)[:80] or "change"
