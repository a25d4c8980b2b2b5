"""The offline rules for tasks that are not reviews: orient, plan, and say what needs a model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cockpit.core.named_files import drop_long_runs
from cockpit.decide.model import PacketFact, Prompt
from cockpit.decide.offline.model_answer import ON_MIND, Answer, asking, finishing, shorten
from cockpit.decide.offline.rules.reviewed_change import search_for
from cockpit.decide.offline.rules.wanted_context import Item, reasons, spelled
from cockpit.decide.offline.session_history import messages_since, read_history, steps_calling
from cockpit.decide.offline.understand_discussion import narrow

NEEDS_MODEL = "The rest needs a model: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or pass --model."

_PLAN = (
    "1. Read the places found, and the tests next to them.\n2. Follow who calls them.\n"
    "3. Answer or change there: a failing test first, then the change, then the project's checks."
)
_SEARCHES = ("symbol", "search")
_REQUEST = re.compile(r"\n### What Was Asked\n\n(?P<words>.*?)(?:\n\n### |\Z)", re.DOTALL)
_PATH = re.compile(
    r"(?<![\w/:])(?:[\w.@+-]+/)*[\w@+-]+\.(?!\d)[A-Za-z]{1,5}\b|(?:[\w.@+-]+/)+[\w.@+-]+"
)
_NAME = re.compile(r"`(\w{2,60})`|\b([a-z]+(?:_[a-z0-9]+)+|[a-z]+[A-Z]\w+|[A-Z]\w+[A-Z]\w*)\b")
_WORD = re.compile(r"[a-z]{4,}")
_COMMON = re.compile(
    "about|after|also|because|been|before|being|between|change|check|could|does|doing|each|every|file|"
    "find|from|have|help|implement|into|just|like|look|make|more|most|must|need|only|other|over|please|"
    "remove|rename|should|some|somewhat|test|tests|than|that|their|them|then|there|these|they|this|"
    "those|update|using|want|what|when|where|which|while|will|with|work|works|would|write|your|instead|"
    "everywhere"
)


def answer_task(prompt: Prompt) -> Answer:
    """Return the next step of a session of any other type: one request, then a plan, then the end.

    A question that documents in the packet answer is answered by them at once.
    """
    steps = read_history(prompt)
    words = user_request(prompt)
    items, lead = places(words), "I can look around and plan this; I am rules, not a model."
    requests = steps_calling(steps, "request_context")
    passages = [fact for fact in prompt.facts if fact.source_type == "docs"]
    if requests:
        messages = messages_since(steps, requests[0])
        if requests[-1].status != "discussed":
            return _plan(prompt.facts, words)
        if not messages:
            return Answer(ON_MIND)
        for message in messages:
            items, lead = narrow(items, message)
        if not items or not lead:
            return _plan(prompt.facts, words)
    elif passages and prompt.task_type == "investigate":
        return _quote(passages)
    return asking(
        f"{lead} To orient I would look at:\n\n{reasons(items)}",
        purpose=f"Orient for {prompt.task_type or 'the task'}: {shorten(words)}",
        question="Where in the project does this take place?",
        scope=[item.scope for item in items],
        escalation="I will not ask for more; a model that takes over may.",
    )


def _quote(passages: Sequence[PacketFact]) -> Answer:
    """Answer a question with the passages of the project's documents that the librarian found for it."""
    named = {fact.source_ref.removeprefix("file:"): fact.text.strip() for fact in passages}
    quoted = [
        "\n".join(f"> {line}".rstrip() for line in text.split("\n")) + f"\n\n— `{place}`"
        for place, text in named.items()
    ]
    last = "I quote; I am rules, not a model."
    text = "\n\n".join(["The project's documents say:", *quoted, last])
    return finishing("done", f"Answered by quoting {', '.join(named)}.", words=text)


def user_request(prompt: Prompt) -> str:
    """Return the user's own text, out of the opening message."""
    opening = "\n".join(fact.text for fact in prompt.facts if fact.source_type == "task")
    match = _REQUEST.search(opening)
    return (match["words"] if match else opening).strip()


def places(words: str) -> tuple[Item, ...]:
    """Where to look first: the tree, the files that are named, the names and nouns that are used."""
    items = [Item("tree:. @outline", "code", ("tree",), "what there is")]
    short = drop_long_runs(words)
    paths = list(dict.fromkeys(_PATH.findall(short)))[:3]
    items += [Item(f"file:{spelled(path)}", "code", (path,), "you named it") for path in paths]
    bare = _PATH.sub(" ", short)
    names = list(dict.fromkeys(quoted or plain for quoted, plain in _NAME.findall(bare)))[:3]
    items += [Item(f"symbol:{name}", "callers", (name,), "you named it") for name in names]
    nouns = [
        noun for noun in dict.fromkeys(_WORD.findall(bare.lower())) if not _COMMON.fullmatch(noun)
    ]
    nouns = [noun for noun in nouns if not any(noun in name.lower() for name in names)][:4]
    if nouns and len(items) < 4:
        scope = f"search:(?i){search_for(nouns)}"
        items.append(Item(scope, "code", tuple(nouns), "where these words occur"))
    return tuple(items)


def _plan(facts: Sequence[PacketFact], words: str) -> Answer:
    places_found = [line for fact in facts if (line := _describe(fact))]
    findings = "\n".join(places_found[:12]) or "No place that fits."
    text = f"What I found:\n\n{findings}\n\nHow I would continue:\n\n{_PLAN}\n\n{NEEDS_MODEL}"
    summary = f"Oriented and planned “{shorten(words)}” by offline rules. {NEEDS_MODEL}"
    return finishing("blocked", summary, words=text)


def _describe(fact: PacketFact) -> str:
    first = re.search(r"^\S[^:\n]*:\d+", fact.text, re.MULTILINE)
    name = f"- `{fact.source_ref.removeprefix('file:')}`"
    if fact.source_type == "file":
        return name
    return f"{name}: first `{first[0]}`" if first and fact.source_type in _SEARCHES else ""
