"""Rules that judge an added line by itself: a table of expressions, and a few with more to look at."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cockpit.core.test_files import is_test
from cockpit.decide.offline.rules.code_and_comments import added_code, is_python, split_line
from cockpit.decide.offline.rules.review_finding import Finding, Grade
from cockpit.decide.offline.rules.reviewed_change import Change, is_docs, is_source

_PYTHON, _SCRIPT = "py pyi", "js jsx ts tsx mjs cjs vue svelte"
_STOP = "A debugger stop was left in."
_CODE_RULES: tuple[tuple[str, Grade, str, str, str, bool | None], ...] = (
    ("debug-stop", "blocking", _PYTHON,
     r"(?:^|[;:])\s*(?:breakpoint\(\)|(?:i?pdb|__import__\(\"\"\))\.set_trace\()", _STOP, None),
    ("debug-stop", "blocking", "rb", r"\bbinding\.(?:pry|irb)\b|\bbyebug\b", _STOP, None),
    ("debug-stop", "blocking", _SCRIPT, r"^\s*debugger\s*+;?\s*$", _STOP, None),
    ("assert-tuple", "blocking", _PYTHON, r"\s*assert\s*\(.+,\s*\"\"\s*\)\s*\Z",
     "This asserts a tuple, which is always true: the brackets make it one.", None),
    ("is-literal", "question", _PYTHON, r"\bis\s+(?:not\s+)?(?:\"\"|\d+\b)",
     "`is` compares identity; for a literal, equality is meant. Use `==`.", None),
    ("skipped-test", "question", "",
     r"pytest\.mark\.(?:skip|xfail)\b|pytest\.skip\(|unittest\.skip|\bskipTest\(|"
     r"\b(?:it|test|describe)\.skip\(|\bx(?:it|describe|test)\(|\bt\.Skip(?:Now|f)?\(|#\[ignore\]|"
     r"@(?:Disabled|Ignore)\b",
     "A test is switched off here. Until when, and which issue brings it back?", True),
    ("danger", "question", _PYTHON, r"(?<![\w.])(?:eval|exec)\(",
     "`eval` and `exec` run whatever text reaches them. Where does it come from?", False),
    ("danger", "question", _PYTHON, r"\bshell\s*=\s*True\b|\bos\.system\(",
     "This goes through a shell. Can any part of the command come from outside?", False),
    ("danger", "question", _PYTHON,
     r"\bpickle\.loads?\(|\bmarshal\.loads?\(|\byaml\.load\((?!.{0,500}Loader)",
     "Loading this format runs code that the data names. Who writes the data?", False),
    ("danger", "question", _PYTHON, r"\bverify\s*=\s*False\b|_create_unverified_context",
     "Certificates are not checked here. Is that meant for production?", False),
    ("equals-none", "nit", _PYTHON, r"(?<![<>=!])[=!]=\s*None\b|\bNone\s*[=!]=(?!=)",
     "Compare with None by `is` or `is not`: `==` asks the object, which may lie.", None),
    ("equals-bool", "nit", _PYTHON, r"(?<![<>=!])[=!]=\s*(?:True|False)\b",
     "Comparing with True or False by `==` is longer than the value itself.", False),
)  # fmt: skip
"""Rule, grade, endings of files, expression, what is said; True: in tests alone, False: nowhere in them."""
_PRINTS = (
    ("py", "print(", r"^\s*print\("),
    (_SCRIPT, "console.log", r"\bconsole\.log\("),
    ("rs", "dbg!", r"\bdbg!\("),
    ("php", "var_dump", r"\bvar_dump\("),
)
_TALKS = re.compile(
    r"(?:^|/)(?:cli|scripts?|bin|tools?|bench(?:marks?)?|examples?|demo|manage|setup|noxfile|tasks)"
    r"(?:[/._]|\Z)|__main__|(?:_cli|_script)\."
)
_CONFLICT = re.compile(r"<<<<<<< \S|>>>>>>> \S|\|\|\|\|\|\|\| \S")
_MASKED = re.compile(r"\[masked:([a-z]+(?:-[a-z]+)*)\]")
# Masks of these kinds come from how random a value looks, not from a known shape.
_GUESSED = frozenset({"secret", "bearer", "url-password"})
_BIDI = re.compile("⟦U\\+(202[A-E]|206[6-9])⟧|[\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile(r"⟦U\+(00[0189][0-9A-F]|007F|200[EF]|2028|2029|061C)⟧")
_TODO = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?P<rest>[^\n]*)")
_TRACKED = re.compile(r"#\d|https?://|[A-Z]{2}-\d")
_BARE = re.compile(r"\s*except\s*:")
_BROAD = re.compile(r"\s*+except\s*+(?:\(?\s*+(?:Base)?Exception\b[^:]*+)?+:\s*+(?P<body>\S.*)?\Z")
_NOTHING = re.compile(r"\s*(?:pass|\.\.\.|continue)\s*\Z")


def committed_by_mistake(change: Change) -> Iterator[Finding]:
    """Conflict markers, secrets and hidden characters, in files of any kind."""
    for file, line in change.added(code_only=False):
        path, number, text = file.path, line.number, line.text
        shown = is_docs(path)
        meant = shown or is_test(path)
        if _CONFLICT.match(text):
            words = f"A conflict marker was committed: `{text.split()[0]}`."
            yield Finding(
                path, number, "conflict-marker", "question" if meant else "blocking", words
            )
        for kind in dict.fromkeys(_MASKED.findall(text)):
            guess = meant or kind in _GUESSED
            head = (
                "Is this a real {}? Then revoke it"
                if guess
                else "A {} is committed here. Revoke it"
            )
            words = f"{head.format(kind.replace('-', ' '))}, and read it from the environment."
            yield Finding(path, number, "secret", "question" if guess else "blocking", words)
        if match := _BIDI.search(text):
            code = match[1] or f"{ord(match[0]):04X}"
            words = f"U+{code} changes the order in which this line is read: it may not do what it shows."
            yield Finding(
                path, number, "hidden-character", "question" if shown else "blocking", words
            )
        elif match := _CONTROL.search(text):
            words = (
                f"A raw control character, U+{match[1]}, is in this line. An escape would show it."
            )
            yield Finding(path, number, "hidden-character", "question", words)


def judged_by_itself(change: Change) -> Iterator[Finding]:
    """What the table says of added lines of code."""
    for path, line, code in added_code(change):
        for name, grade, suffixes, pattern, text, tests in _CODE_RULES:
            applies = not suffixes or _suffix(path) in suffixes.split()
            if applies and tests in (None, is_test(path)) and re.search(pattern, code):
                yield Finding(path, line, name, grade, text)


def swallowed_errors(change: Change) -> Iterator[Finding]:
    for path, line, code in added_code(change):
        broad = _BROAD.match(code) if is_python(path) else None
        body = [broad["body"]] if broad and broad["body"] else change.after(path, line, 1)
        if broad and body and _NOTHING.match(body[0]):
            words = "Every error is caught here and dropped without a trace. Which one is expected?"
            yield Finding(path, line, "swallowed-error", "question", words)
            continue
        raises = any("raise" in text for text in change.after(path, line, 6))
        if broad and _BARE.match(code) and not raises:
            words = (
                "A bare `except:` also catches KeyboardInterrupt and SystemExit. Which error is it?"
            )
            yield Finding(path, line, "bare-except", "question", words)


def prints(change: Change) -> Iterator[Finding]:
    """The first print that a source file gains, unless it printed before: then that is its trade."""
    printing: set[str] = set()
    for path, line, code in added_code(change):
        if path in printing or not is_source(path) or _TALKS.search(path):
            continue
        for suffixes, name, pattern in _PRINTS:
            if _suffix(path) in suffixes.split() and re.search(pattern, code):
                ours = {each.number for file, each in change.added() if file.path == path}
                lines = change.lines.get(path, {})
                if not any(name in text for number, text in lines.items() if number not in ours):
                    printing.add(path)
                    words = (
                        f"Is this `{name.rstrip('(')}` meant to stay, or left over from debugging?"
                    )
                    yield Finding(path, line, "debug-print", "nit", words)


def todos(change: Change) -> Iterator[Finding]:
    for file, line in change.added():
        match = _TODO.search(split_line(file.path, line.text.removesuffix("␍"))[1])
        if match and not _TRACKED.search(match["rest"]):
            note = match[0].strip().rstrip(".")[:80]
            words = f"`{note}` is added. Do it here, or open an issue and name it."
            yield Finding(file.path, line.number, "todo", "nit", words)


def binaries(change: Change) -> Iterator[Finding]:
    for file in change.files:
        if file.binary and file.status == "added":
            words = "A binary file is added; nothing here can read it. Does it belong in the repository?"
            yield Finding(file.path, 0, "binary", "question", words)


def _suffix(path: str) -> str:
    return path.rpartition(".")[2]
