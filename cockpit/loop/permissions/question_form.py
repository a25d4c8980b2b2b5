"""Questions that an agent asks its user: read from its protocol, shown as a form, and their answers.

Stored is a question as it is shown, masked; an answer names options by their place, so that the process that
waits gives the agent its own words back. See ``docs/reference/agents.md``, questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from cockpit.core.errors import CockpitError
from cockpit.core.json_fields import get_object, get_objects, get_text
from cockpit.core.secrets import mask

MOST_QUESTIONS = 20
MOST_OPTIONS = 50
LONGEST_ANSWER = 20_000
_LONGEST_TEXT = 4_000
_OTHER = "_custom"
"""Ends the key of the field in which claude-agent-acp takes an answer of the user's own."""
_TYPES = {"string": "text", "number": "number", "integer": "integer", "boolean": "yes_no"}

AnswerKind = Literal["choice", "text", "number", "integer", "yes_no"]


class AnswerInvalid(CockpitError):
    """The answers do not fit the questions; the message names the question and what is missing."""

    code = "usage"


class AnswerNeeded(CockpitError):
    """A question is answered, not approved."""

    code = "needs_answer"


class QuestionOption(Struct, frozen=True):
    """One answer that the agent offers."""

    value: str
    """What the agent gets."""
    label: str
    text: str = ""
    """What it means."""


class Question(Struct, frozen=True):
    """One question of a form."""

    key: str
    """The agent's own name of it."""
    text: str
    header: str = ""
    kind: AnswerKind = "text"
    options: tuple[QuestionOption, ...] = ()
    several: bool = False
    """Whether more than one option may be chosen."""
    other: str = ""
    """The key under which an answer of the user's own goes to the agent; '' takes options only."""
    required: bool = False
    default: str = ""
    least: int | None = None
    most: int | None = None
    """Bounds: of characters of a text, of a number, or of how many options are chosen."""

    def record(self) -> dict[str, Any]:
        """Return the question as a proposal's body has it, masked."""
        return {
            "header": mask(self.header),
            "text": mask(self.text),
            "kind": self.kind,
            "options": [[mask(option.label), mask(option.text)] for option in self.options],
            "several": self.several,
            "other": bool(self.other),
            "required": self.required,
            "default": mask(self.default),
            "least": self.least,
            "most": self.most,
        }


class Answer(Struct, frozen=True):
    """The user's answer to one question."""

    picked: tuple[int, ...] = ()
    """The places of the chosen options, from 0."""
    text: str = ""
    """The user's own text."""


def read_claude_questions(arguments: Mapping[str, Any]) -> tuple[Question, ...]:
    """Read the questions of Claude Code's ``AskUserQuestion``."""
    read = []
    for each in get_objects(dict(arguments), "questions")[:MOST_QUESTIONS]:
        text = get_text(each, "question")
        options = tuple(_options(each, "label", "label"))
        several = each.get("multiSelect") is True
        kind: AnswerKind = "choice" if options else "text"
        header = _cut(get_text(each, "header"))
        read.append(
            Question(text, _cut(text), header, kind, options, several, other=text, required=True)
        )
    return tuple(read)


def read_form(schema: Mapping[str, Any]) -> tuple[Question, ...]:
    """Read the flat JSON schema of an elicitation; a field of an unknown type is left out."""
    fields = get_object(dict(schema), "properties")
    needed = schema.get("required")
    required = (
        [name for name in needed if isinstance(name, str)] if isinstance(needed, list) else []
    )
    read = []
    for key, value in list(fields.items())[: 2 * MOST_QUESTIONS]:
        if not isinstance(value, dict) or _is_own_answer(key, fields):
            continue
        items = get_object(value, "items")
        several = value.get("type") == "array"
        options = tuple(_field_options(items if several else value))
        kind = "choice" if options else _TYPES.get(get_text(value, "type"), "")
        if not kind or (several and not options):
            continue
        bounds = ("minItems", "maxItems") if several else ("minLength", "maxLength")
        bounds = ("minimum", "maximum") if kind in ("number", "integer") else bounds
        default = value.get("default")
        read.append(
            Question(
                key,
                _cut(get_text(value, "description")),
                _cut(get_text(value, "title") or key),
                kind,  # type: ignore[arg-type]  # the kinds of _TYPES, or choice
                options,
                several,
                other=f"{key}{_OTHER}" if options and f"{key}{_OTHER}" in fields else "",
                required=key in required,
                default=_default(default),
                least=_bound(value.get(bounds[0])),
                most=_bound(value.get(bounds[1])),
            )
        )
    return tuple(read[:MOST_QUESTIONS])


def check_answers(questions: Sequence[Mapping[str, Any]], answers: Sequence[Answer]) -> None:
    """Check answers against stored questions. Raises :class:`AnswerInvalid`."""
    if len(answers) != len(questions):
        raise AnswerInvalid(f"There are {len(questions)} questions and {len(answers)} answers.")
    for number, (question, answer) in enumerate(zip(questions, answers, strict=True), 1):
        name = str(question["header"] or question["text"])[:60] or f"question {number}"
        options = question["options"]
        if any(not 0 <= place < len(options) for place in answer.picked):
            raise AnswerInvalid(f"{name} has {len(options)} options.")
        if len(answer.picked) > 1 and not question["several"]:
            raise AnswerInvalid(f"{name} takes one option.")
        if answer.text and options and not question["other"]:
            raise AnswerInvalid(f"{name} takes one of its options, and no text of your own.")
        if len(answer.text) > LONGEST_ANSWER:
            raise AnswerInvalid(
                f"The answer to {name} has more than {LONGEST_ANSWER:,} characters."
            )
        if question["required"] and not (answer.picked or answer.text.strip()):
            raise AnswerInvalid(f"{name} needs an answer.")
        if mask(answer.text) != answer.text:
            raise AnswerInvalid(
                f"The answer to {name} looks like a secret, and cockpit stores none. Answer in the agent's"
                " own program."
            )
        _check_text(name, str(question["kind"]), answer.text)
        _check_size(name, question, answer)


def _check_size(name: str, question: Mapping[str, Any], answer: Answer) -> None:
    """Check the bounds that the agent set. Raises :class:`AnswerInvalid`."""
    kind, size = str(question["kind"]), float(len(answer.text))
    if not (answer.picked or answer.text.strip()):
        return
    if question["several"]:
        size = len(answer.picked)
    elif kind in ("number", "integer"):
        size = _number(kind, answer.text) or 0
    elif kind != "text":
        return
    what = "options" if question["several"] else "characters" if kind == "text" else "as a number"
    if question["least"] is not None and size < question["least"]:
        raise AnswerInvalid(f"{name} takes at least {question['least']} {what}.")
    if question["most"] is not None and size > question["most"]:
        raise AnswerInvalid(f"{name} takes at most {question['most']} {what}.")


def _check_text(name: str, kind: str, text: str) -> None:
    if not text.strip() or kind not in ("number", "integer", "yes_no"):
        return
    if kind == "yes_no" and text.casefold() not in ("yes", "no", "true", "false"):
        raise AnswerInvalid(f"{name} takes yes or no.")
    if kind in ("number", "integer") and _number(kind, text) is None:
        raise AnswerInvalid(
            f"{name} takes {'a whole number' if kind == 'integer' else 'a number'}."
        )


def fill_answers(
    form: str, questions: Sequence[Question], given: Mapping[str, Any], answers: Sequence[Answer]
) -> dict[str, Any]:
    """Return what the agent gets for its input ``given``: in the shape that its protocol takes."""
    if form == "claude":
        return {**given, "answers": _write_claude_answers(questions, answers)}
    return _write_form(questions, answers)


def _write_claude_answers(
    questions: Sequence[Question], answers: Sequence[Answer]
) -> dict[str, str]:
    """Return the ``answers`` of ``AskUserQuestion``: text by question."""
    return {
        question.key: text
        for question, answer in zip(questions, answers, strict=True)
        if (text := ", ".join(_values(question, answer)))
    }


def _write_form(questions: Sequence[Question], answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the ``content`` of an elicitation: values by field, as their types want them."""
    content: dict[str, Any] = {}
    for question, answer in zip(questions, answers, strict=True):
        text = answer.text.strip()
        if question.options:
            picked = [question.options[place].value for place in answer.picked]
            if picked:
                content[question.key] = picked if question.several else picked[0]
            if text and question.other:
                content[question.other] = text
        elif not text:
            continue
        elif question.kind == "yes_no":
            content[question.key] = text.casefold() in ("yes", "true")
        elif question.kind in ("number", "integer"):
            content[question.key] = _number(question.kind, text)
        else:
            content[question.key] = answer.text
    return content


def record_answers(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """Return answers as a proposal's body has them."""
    return [{"picked": list(answer.picked), "text": answer.text} for answer in answers]


def read_answers(record: Any) -> tuple[Answer, ...]:
    """Read what :func:`record_answers` stored."""
    return tuple(Answer(tuple(each["picked"]), str(each["text"])) for each in record)


def describe_answers(
    questions: Sequence[Mapping[str, Any]], answers: Sequence[Answer]
) -> list[tuple[str, str]]:
    """Return each question and its answer as names and values to show."""
    lines = []
    for number, (question, answer) in enumerate(zip(questions, answers, strict=True), 1):
        texts = [str(question["options"][place][0]) for place in answer.picked]
        shown = ", ".join([*texts, *filter(None, [answer.text])]) or "(no answer)"
        lines.append((f"answer {number}", shown))
    return lines


def describe_questions(questions: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return each question with its numbered options as names and values to show."""
    lines = []
    for number, question in enumerate(questions, 1):
        head = ": ".join(filter(None, (str(question["header"]), str(question["text"]))))
        rows = [head + (" (choose any)" if question["several"] else "")]
        for place, (label, text) in enumerate(question["options"], 1):
            rows.append(f"  {place}. {label}" + (f": {text}" if text else ""))
        if question["other"]:
            rows.append("  or a text of your own")
        lines.append((f"question {number}", "\n".join(rows)))
    return lines


def parse_answer(question: Mapping[str, Any], text: str) -> Answer:
    """Read an answer as typed: numbers of options or their labels, several by commas, else own text."""
    options = [str(label) for label, _ in question["options"]]
    words = [each.strip() for each in text.split(",")] if question["several"] else [text.strip()]
    places = [_place_of(options, word) for word in words]
    if options and places and all(place is not None for place in places):
        return Answer(tuple(dict.fromkeys(place for place in places if place is not None)))
    return Answer(text=text)


def _place_of(options: Sequence[str], word: str) -> int | None:
    folded = [option.casefold() for option in options]
    if word.casefold() in folded:
        return folded.index(word.casefold())
    is_number = word.isascii() and word.isdigit() and 0 < int(word[:6]) <= len(options)
    return int(word) - 1 if is_number else None


def _values(question: Question, answer: Answer) -> Iterator[str]:
    yield from (question.options[place].value for place in answer.picked)
    if answer.text.strip():
        yield answer.text.strip()


def _options(body: Mapping[str, Any], value: str, label: str) -> Iterator[QuestionOption]:
    for each in get_objects(dict(body), "options")[:MOST_OPTIONS]:
        if name := get_text(each, label):
            yield QuestionOption(
                get_text(each, value), _cut(name), _cut(get_text(each, "description"))
            )


def _field_options(body: Mapping[str, Any]) -> Iterator[QuestionOption]:
    titled = get_objects(dict(body), "oneOf") or get_objects(dict(body), "anyOf")
    for each in titled[:MOST_OPTIONS]:
        value = get_text(each, "const")
        if not value:
            continue
        title, text = get_text(each, "title") or value, get_text(each, "description")
        # claude-agent-acp writes "label — description" into the title.
        if title.startswith(f"{value} — "):
            title, text = value, text or title.removeprefix(f"{value} — ")
        yield QuestionOption(value, _cut(title), _cut(text))
    values, names = body.get("enum"), body.get("enumNames")
    if titled or not isinstance(values, list):
        return
    for place, value in enumerate(values[:MOST_OPTIONS]):
        if isinstance(value, str) and value:
            name = names[place] if isinstance(names, list) and place < len(names) else value
            yield QuestionOption(value, _cut(name if isinstance(name, str) else value))


def _is_own_answer(key: str, fields: Mapping[str, Any]) -> bool:
    return key.endswith(_OTHER) and key.removesuffix(_OTHER) in fields


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _cut(str(value)) if isinstance(value, str | int | float) else ""


def _bound(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(kind: str, text: str) -> float | int | None:
    try:
        number = float(text.strip()[:100])
    except ValueError:
        return None
    if number != number or number in (float("inf"), float("-inf")):
        return None
    if kind == "integer":
        return int(number) if number == int(number) else None
    return number


def _cut(text: str) -> str:
    return text[:_LONGEST_TEXT]
