"""Whether a task asks for knowledge: pure rules over its words, each with a reason.

See ``docs/reference/knowledge.md``, when it searches.
"""

from __future__ import annotations

import re

from msgspec import Struct

MOST_CHARS = 4_000
"""Characters of a task that are read."""

KEYWORDS = (
    "how to", "what is", "explain", "documentation", "guide", "tutorial", "example", "best practice",
    "architecture", "design", "reference", "api", "error", "fix", "debug", "config", "setting",
)  # fmt: skip
"""Words that ask for knowledge wherever they stand."""
_STARTS = (
    "what",
    "how",
    "why",
    "where",
    "when",
    "which",
    "who",
    "?",
    "does",
    "do",
    "is",
    "are",
    "can",
    "should",
)
_ENDINGS = "(?:s|es|ing|ed|ure|uration|urations|ured|uring|ger|ged|ging)?"
_KEYWORD = re.compile(
    r"(?<![.\w])("  # logging.debug is a name
    + "|".join(word.replace(" ", r"\s+") for word in KEYWORDS)
    + rf"){_ENDINGS}\b"
)
_NAMED = re.compile(
    r"\b(according to|(?:our|the|your|project'?s?)\s+(?:usual|agreed|own|team'?s?|naming|house)?\s*"
    r"(?:docs?|conventions?|guidelines?|rules?|polic(?:y|ies)|standards?|style|format|handbook|decisions?)"
    r"|handbook|runbook|adrs?|decision records?|code of conduct)\b"
)
_TOLD = re.compile(
    r"\b((?:tell|remind|teach|show)\s+me\s+(?:about|how|what|why|where|when|which)"
    r"|(?:walk|talk|guide|take)\s+me\s+through|(?:help\s+me|do\s+not|don'?t|to)\s+understand"
    r"|is\s+there\s+(?:an?|any)\s+(?:\w+\s+)?(?:convention|rule|doc|page|policy|plan|reason|standard|way)"
    r"|(?:an?|the|short|quick|brief)\s+(?:overview|primer|introduction|summary|background)|overview\s+of"
    r"|summar(?:y|i[sz]e)\s+(?:of\s+)?(?:the|our|how|what)|describe\s+(?:the|our|how|what)"
    r"|what'?s\s+(?:our|the|your)|set(?:ting)?\s+up\s+(?:the|a|my)\s+(?:\w+\s+)?(?:env|environment|project|repo))\b"
)

# What is done to something at hand, where what is done to it needs no document.
_COMMANDS = re.compile(
    r"(?:please\s+|just\s+|now\s+|then\s+|ok(?:ay)?,?\s+|go\s+ahead\s+and\s+|can\s+you\s+|could\s+you\s+)*(?:"
    r"(?:git\s+)?(?:commit|push|pull|rebase|merge|stash|checkout|switch|tag|amend|squash|revert)\b"
    r"|(?:run|rerun|re-run|execute|start|stop|restart|kill)\b"
    r"|(?:format|lint|reformat)\b"
    r"|(?:rename|delete|remove|move|copy|bump|undo|redo|retry|continue|proceed|resume|go\s+on|save|close|open)\b"
    r"|(?:apply|accept|approve|revert)\s+(?:it|this|that|these|those|the\s+(?:change|changes|patch|diff|fix))\b"
    r"|(?:show|list|print|cat|display)\b"
    r")"
)
_IN_PLACE = re.compile(
    r"\b(?:fix|do|change|edit|update|correct)\s+(?:it|this|that|these|those|them)(?:\s+(?:in\s+place|now|please"
    r"|again|here|up|yourself|for\s+me))*\s*[.!]*$"
)
_TYPOS = re.compile(
    r"\bfix(?:es|ing)?\s+(?:the\s+|a\s+|all\s+|some\s+|these\s+|this\s+|that\s+|my\s+)*"
    r"(?:typos?|spelling|whitespace|indent(?:ation)?|formatting|lint(?:ing)?|imports?|line\s+endings?"
    r"|merge\s+conflicts?|conflicts?)\b"
)
_THANKS = re.compile(
    r"(?:yes|no|ok(?:ay)?|thanks?|thank you|great|good|perfect|looks good|lgtm|done|sure|nice|cool)\b"
    r"[^?]{0,40}$"
)
_TALK = re.compile(
    r"(?:what(?:'s| is) (?:up|next|the time|your name)|how are you|who are you|why not)\b"
)
_ASKING = re.compile(
    r"\b(?:how|why|what|which|where)\b.*\?|\b(?:how\s+to|how\s+(?:do|does|is|are|should|can)|why|what\s+is|explain)\b"
)
_QUOTED = re.compile(r"```.*?(?:```|\Z)|\"[^\"\n]{0,400}\"|`[^`\n]{0,200}`", re.DOTALL)


class Need(Struct, frozen=True):
    """Whether knowledge is needed, and why or why not in a phrase."""

    is_needed: bool
    why: str


def needs_knowledge(task: str) -> Need:
    """Decide whether the words of a task ask for knowledge of the project.

    Text in quotes and fences is not looked at: it is what the task is about. Pure and deterministic.
    """
    words = " ".join(_QUOTED.sub(" ", task[:MOST_CHARS]).lower().split())
    bare = words.lstrip("*-> ")
    if not re.search(r"\w", bare):
        return Need(
            bare.startswith("?"), "it is a bare question mark" if "?" in bare else "it has no words"
        )
    if _TALK.match(bare):
        return Need(False, "it is small talk")
    if _THANKS.fullmatch(bare):
        return Need(False, "it answers, and asks for nothing new")
    asks = _ASKING.search(bare)
    if not asks:
        if command := _COMMANDS.match(bare):
            return Need(False, f"it is a command ({command[0].split()[-1]!r})")
        if _IN_PLACE.search(bare):
            return Need(False, "it continues with what is at hand")
        if _TYPOS.search(bare) and not _KEYWORD.search(_TYPOS.sub(" ", bare)):
            return Need(False, "it needs the text alone")
    if bare.startswith(_STARTS) and _starts_question(bare):
        return Need(True, f"it is a question ({_first(bare)!r})")
    if named := _NAMED.search(bare):
        return Need(True, f"it names the project's documents ({named[0]!r})")
    if asked_for := _TOLD.search(bare):
        return Need(True, f"it asks to be told ({asked_for[0]!r})")
    if keyword := _KEYWORD.search(bare):
        return Need(True, f"it says {keyword[0]!r}")
    if bare.endswith("?"):
        return Need(True, "it ends as a question")
    return Need(False, "nothing in it asks for knowledge")


def _first(words: str) -> str:
    return words.split()[0].rstrip(",:")


def _starts_question(words: str) -> bool:
    first = _first(words)
    if first in ("what", "how", "why", "where", "which", "who") or first.startswith("?"):
        return True
    # "do this" and "when done, push" begin like questions.
    return first in _STARTS and words.endswith("?")
