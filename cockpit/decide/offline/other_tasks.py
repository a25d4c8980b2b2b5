"""The offline rules for tasks that are not reviews: orient, plan, and say what needs a model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cockpit.core.named_files import drop_long_runs
from cockpit.decide.model import PacketFact, Prompt
from cockpit.decide.offline.model_answer import Answer, asking, finishing
from cockpit.decide.offline.rules.reviewed_change import search_for
from cockpit.decide.offline.rules.wanted_context import Item, reasons, spelled
from cockpit.decide.offline.session_history import messages_since, read_history, steps_calling
from cockpit.decide.offline.understand_discussion import narrow

NEEDS_MODEL = (
    "The rest needs a model: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or start with "
    "--model provider:name."
)

_PLAN = {
    "investigate": (
        "Read the places found, from the definition outwards.",
        "Follow who calls it, and what it depends on.",
        "Answer the question, each claim with its file and line.",
    ),
    "create_pr": (
        "Read the branch's commits and its diff against the default branch.",
        "Write the reason first, then what changes, then what was run.",
        "Propose `gh pr create` with the title and body in full.",
    ),
    "create_issue": (
        "Collect what shows the problem: messages, files, lines.",
        "Look for an open issue that says the same.",
        "Propose `gh issue create` with the title and body in full.",
    ),
    "": (
        "Read the places found, and the tests next to them.",
        "Write a test that fails for the want of the change.",
        "Make the change where the tests point, and nothing beside it.",
        "Run the project's checks, and bring the docs up to date.",
    ),
}
_REQUEST = re.compile(r"\n### What Was Asked\n\n(?P<words>.*?)(?:\n\n### |\Z)", re.DOTALL)
_PATH = re.compile(
    r"(?<![\w/:])(?:[\w.@+-]+/)*[\w@+-]+\.(?!\d)[A-Za-z]{1,5}\b|(?:[\w.@+-]+/)+[\w.@+-]+"
)
_NAME = re.compile(r"`([^`\s]{2,60})`|\b([a-z]+(?:_[a-z0-9]+)+|[a-z]+[A-Z]\w+|[A-Z]\w+[A-Z]\w*)\b")
_WORD = re.compile(r"[A-Za-z]{4,}")
_COMMON = re.compile(
    r"(?:about|after|also|because|been|before|being|between|change|check|could|does|doing|each|every|"
    r"file|find|from|have|help|implement|into|just|like|look|make|more|most|must|need|only|other|"
    r"over|please|remove|rename|should|some|somewhat|test|tests|than|that|their|them|then|there|"
    r"these|they|this|those|update|using|want|what|when|where|which|while|will|with|work|works|"
    r"would|write|your|instead|everywhere)\Z",
    re.IGNORECASE,
)


def answer_task(prompt: Prompt) -> Answer:
    """Return the next step of a session of any other type: one request, then a plan, then the end.

    A question that documents in the packet answer is answered by them at once.
    """
    steps = read_history(prompt)
    words = user_request(prompt)
    requests = steps_calling(steps, "request_context")
    passages = [fact for fact in prompt.facts if fact.source_type == "docs"]
    if passages and not requests and prompt.task_type == "investigate":
        return _quote(passages)
    if not requests:
        items = places(words)
        return _ask(
            prompt, words, items, "I can look around and plan this; I am rules, not a model."
        )
    last = requests[-1]
    messages = messages_since(steps, requests[0])
    if last.status == "discussed":
        if not messages:
            return Answer("You would like to discuss this first. What is on your mind?")
        items = places(words)
        lead = understood = ""
        for message in messages:
            narrowed = narrow(items, message)
            items, lead = narrowed.items, narrowed.answer
            understood = "yes" if narrowed.understood and not narrowed.why else ""
        if understood and items:
            return _ask(prompt, words, items, lead)
    return _plan(prompt, words)


def _quote(passages: Sequence[PacketFact]) -> Answer:
    """Answer a question with the passages of the project's documents that the librarian found for it."""
    quoted = [
        "\n".join(
            [*(f"> {line}".rstrip() for line in fact.text.strip().splitlines()), "", f"— `{place}`"]
        )
        for fact in passages
        if (place := fact.source_ref.removeprefix("file:"))
    ]
    text = "The project's documents say:\n\n" + "\n\n".join(quoted)
    names = ", ".join(fact.source_ref.removeprefix("file:") for fact in passages)
    summary = f"Answered from {names}, as offline rules quote it; whether it still holds, a model can check."
    return finishing("done", summary, words=f"{text}\n\nI quote; I am rules, not a model.")


def user_request(prompt: Prompt) -> str:
    """Return the user's own text, out of the opening message."""
    opening = "\n".join(fact.text for fact in prompt.facts if fact.source_type == "task")
    match = _REQUEST.search(opening)
    return match["words"].strip() if match else opening.strip()


def places(words: str) -> tuple[Item, ...]:
    """Where to look first: the tree, the files that are named, the names and nouns that are used."""
    items = [Item("tree:. @outline", "code", ("tree",), "what there is")]
    short = drop_long_runs(words)
    paths = list(dict.fromkeys(_PATH.findall(short)))[:3]
    items += [Item(f"file:{spelled(path)}", "code", (path,), "you named it") for path in paths]
    bare = _PATH.sub(" ", short)
    names = [quoted or bare_name for quoted, bare_name in _NAME.findall(bare)]
    names = [name for name in dict.fromkeys(names) if re.fullmatch(r"\w+", name)][:3]
    items += [Item(f"symbol:{name}", "callers", (name,), "you named it") for name in names]
    nouns = [noun for noun in dict.fromkeys(_WORD.findall(bare.lower())) if not _COMMON.match(noun)]
    nouns = [noun for noun in nouns if not any(noun in name.lower() for name in names)][:4]
    if nouns and len(items) < 4:
        scope = f"search:(?i){search_for(nouns)}"
        items.append(Item(scope, "code", tuple(nouns), "where these words occur"))
    return tuple(items)


def _ask(prompt: Prompt, words: str, items: Sequence[Item], lead: str) -> Answer:
    return asking(
        f"{lead} To orient I would look at:\n\n{reasons(items)}",
        purpose=f"Orient for {prompt.task_type or 'the task'}: {_line(words)}",
        question="Where in the project does this take place?",
        scope=[item.scope for item in items],
        escalation="I will not ask for more; a model that takes over may.",
    )


def _plan(prompt: Prompt, words: str) -> Answer:
    places = [line for fact in prompt.facts if (line := _finding(fact))]
    steps = _PLAN.get(prompt.task_type, _PLAN[""])
    plan = "\n".join(f"{at}. {step}" for at, step in enumerate(steps, 1))
    findings = (
        "What I found:\n\n" + "\n".join(places[:12]) if places else "I found no place that fits."
    )
    text = f"{findings}\n\nHow I would continue:\n\n{plan}\n\n{NEEDS_MODEL}"
    summary = f"Oriented and planned “{_line(words)}” by offline rules. {NEEDS_MODEL}"
    return finishing("blocked", summary, words=text)


def _finding(fact: PacketFact) -> str:
    if fact.source_type not in ("file", "symbol", "search"):
        return ""
    lines = [line for line in fact.text.split("\n") if re.match(r"\S[^:]*:\d+", line)]
    if fact.source_type == "file":
        return f"- `{fact.source_ref.removeprefix('file:')}`"
    first = f"; first `{lines[0].split(': ')[0]}`" if lines else ""
    return f"- `{fact.source_ref}`: {len(lines)} places{first}" if lines else ""


def _line(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= 100 else line[:99] + "…"
