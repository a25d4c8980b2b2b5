"""What the model is told and asked while a tool grows: one short dialogue, with three calls.

See ``docs/reference/evolve.md``, rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

from msgspec import Struct

from cockpit.core.canonical_json import canonical_json
from cockpit.core.fenced_text import fence_text
from cockpit.core.read_record import InvalidRecord, parse_object, read_record, record_schema
from cockpit.decide.model import (
    Done,
    Model,
    Prompt,
    PromptCall,
    PromptMessage,
    TextDelta,
    ToolCall,
    ToolSpec,
    Usage,
)

TASK_TYPE = "evolve"
MAX_ARGUMENTS = 200_000

_SYSTEM = """You write one tool for coding agents: a Python function, test first.

1. Call write_test with the tool's name, its purpose, a test, and a withheld test. Nothing else exists yet:
   both must fail. Each is a whole file: it imports the tool as `from NAME import NAME`, makes its own sample
   data, and asserts exact results. Use functions test_... or unittest; nothing but the standard library.
   The withheld test has another input with another result. You do not see it again: it runs when the test
   passes, and finds code that only repeats the answers of the test.
2. Call write_code with the file NAME.py. It begins with `from cockpit import tool`; the function NAME is
   marked @tool, has type hints and a docstring with an Args: section, and returns JSON values. Use
   @tool(effects="reads") where it writes nothing. Nothing but the standard library. It runs in a sandbox:
   no network, the project read-only.
3. The tests run after every write_code and you read what failed. Change the code until all pass. The test
   stands.

Call give_up when the tool cannot be written so. Make exactly one call in each answer."""


class WriteTest(Struct, frozen=True):
    """A test for a tool that does not exist."""

    name: str
    purpose: str
    source: str
    withheld: str
    """A test with another input, which whoever writes the code does not see."""


class WriteCode(Struct, frozen=True):
    """The whole file of the tool."""

    source: str


class GiveUp(Struct, frozen=True):
    """The tool cannot be written."""

    reason: str


Answer = WriteTest | WriteCode | GiveUp

_RECORDS: dict[str, type[WriteTest | WriteCode | GiveUp]] = {
    "write_test": WriteTest,
    "write_code": WriteCode,
    "give_up": GiveUp,
}
_TOOLS = tuple(
    ToolSpec(name, text, {"required": [], **record_schema(_RECORDS[name], closed=True)})
    for name, text in (
        (
            "write_test",
            "The tests of the tool, before there is code. `source` and `withheld` are whole files.",
        ),
        ("write_code", "The code of the tool. `source` is the whole file NAME.py."),
        ("give_up", "End without a tool, and say why."),
    )
)


class Reply(Struct, frozen=True):
    """One answer of the model. ``call`` is None where it made none, or one that cannot be read."""

    call: Answer | None
    text: str
    problem: str
    """Why there is no call, in words for the model."""
    usage: Usage
    raw: ToolCall | None = None
    """The call as the model wrote it."""


def _leave_out_withheld(arguments: str) -> str:
    try:
        read = parse_object(arguments or "{}", name="It", max_characters=MAX_ARGUMENTS)
    except InvalidRecord:
        return "{}"
    return canonical_json({**read, "withheld": "(kept apart)"})


class Dialogue:
    """The messages so far. A model sees all of them; the rounds of a growth bound their number."""

    def __init__(self, want: str, existing: Sequence[str]) -> None:
        """``existing`` names the tools that there are, so that none is written twice."""
        listed = f"\n\nTools that exist already: {', '.join(existing)}." if existing else ""
        words = f"What is missing, in the words of whoever needs it:\n\n{fence_text(want)}{listed}"
        self._messages: list[PromptMessage] = [PromptMessage("user", words)]
        self._rounds = 0
        self._open = ""

    async def ask(self, model: Model) -> Reply:
        """Ask the model for its next call. Raises ``ModelError``."""
        self._rounds += 1
        prompt = Prompt(
            _SYSTEM, tuple(self._messages), _TOOLS, wave=self._rounds, task_type=TASK_TYPE
        )
        texts, calls, usage = list[str](), list[ToolCall](), Usage()
        async with aclosing(model.stream(prompt)) as events:
            async for event in events:
                match event:
                    case TextDelta():
                        texts.append(event.text)
                    case ToolCall():
                        calls.append(event)
                    case Done():
                        usage = event.usage
                    case _:
                        continue
        text = "".join(texts).strip()
        call = calls[0] if calls else None
        self._keep(text, call.name if call else "", call.arguments if call else "")
        if call is None:
            return Reply(
                None,
                text,
                "The answer has no call. Make one: write_test, write_code or give_up.",
                usage,
            )
        if call.name not in _RECORDS:
            names = ", ".join(_RECORDS)
            words = f"There is no tool {call.name!r}; there are {names}."
            return Reply(None, text, words, usage, call)
        try:
            arguments = parse_object(
                call.arguments or "{}", name=call.name, max_characters=MAX_ARGUMENTS
            )
            read = read_record(_RECORDS[call.name], arguments, name=call.name)
        except InvalidRecord as error:
            return Reply(None, text, str(error), usage, call)
        return Reply(read, text, "", usage, call)

    def restore(self, number: int, text: str, call: str, arguments: str, answer: str) -> None:
        """Take in round ``number``, which another process had, with what the model was told."""
        self._rounds = number
        if call or text:
            self._keep(text, call, arguments)
        self._open = call
        self.answer(answer)

    def _keep(self, text: str, call: str, arguments: str) -> None:
        """Keep an answer of the model for its next ones, without the withheld test."""
        if call == "write_test":
            # Its words may quote the test, and arguments that cannot be read may have it anywhere.
            text, arguments = "", _leave_out_withheld(arguments)
        calls = (PromptCall(f"e-{self._rounds}", call, arguments),) if call else ()
        self._messages.append(PromptMessage("assistant", text, calls))
        self._open = call

    def answer(self, text: str) -> None:
        """Tell the model what came of its last answer."""
        if self._open:
            self._messages.append(
                PromptMessage("tool", text, call_id=f"e-{self._rounds}", tool_name=self._open)
            )
            self._open = ""
        else:
            self._messages.append(PromptMessage("user", text))

    def say(self, words: str) -> None:
        """Tell the model what the user says of the tool that was shown to them."""
        self._messages.append(
            PromptMessage("user", f"The user looked at the tool and says:\n\n{fence_text(words)}")
        )
