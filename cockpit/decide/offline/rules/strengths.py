"""The strengths of a change, as far as rules can see them: always true, with a place."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cockpit.core.test_files import is_test
from cockpit.core.text import pluralize
from cockpit.decide.offline.rules.code_and_comments import functions, tree
from cockpit.decide.offline.rules.public_name_rules import new_names
from cockpit.decide.offline.rules.review_finding import Finding
from cockpit.decide.offline.rules.reviewed_change import Change, is_docs, is_source
from cockpit.decide.offline.rules.test_rules import tests_on

SMALL = 200
"""Changed lines up to which a change can be read in one sitting."""


def strengths(change: Change) -> list[Finding]:
    praise = [*_tests(change), *_documented(change), *_docs(change), *_lighter(change)]
    return praise or list(_small(change))


def _praise(path: str, line: int, rule: str, text: str) -> Finding:
    return Finding(path, line, rule, "praise", text)


def _tests(change: Change) -> Iterator[Finding]:
    touched = any(is_source(file.path) for file in change.files)
    for file in change.files:
        fresh = {
            name: line.number
            for name, line in tests_on(file, "+").items()
            if name not in tests_on(file, "-") and name not in tests_on(file, " ")
        }
        if fresh:
            names = ", ".join(f"`{name}`" for name in list(fresh)[:3])
            more = f" and {len(fresh) - 3} more" if len(fresh) > 3 else ""
            lead = "The change brings its tests" if touched else "More behaviour is under test"
            yield _praise(file.path, min(fresh.values()), "tests", f"{lead}: {names}{more}.")


def _documented(change: Change) -> Iterator[Finding]:
    """The first new public function that says what it is for and what it takes."""
    for file in change.files:
        module = tree(change, file.path) if is_source(file.path) else None
        fresh = {new.line for new in new_names(change) if new.path == file.path}
        for node in functions(module) if module else ():
            if node.lineno not in fresh:
                continue
            arguments = [*node.args.args, *node.args.kwonlyargs]
            typed = node.returns is not None and all(
                argument.annotation or argument.arg in ("self", "cls") for argument in arguments
            )
            words = [
                word
                for word, applies in (
                    ("says what it is for", ast.get_docstring(node) is not None),
                    ("states its types", typed),
                )
                if applies
            ]
            if words:
                message = f"`{node.name}` {' and '.join(words)}."
                yield _praise(file.path, node.lineno, "documented", message)
                return


def _docs(change: Change) -> Iterator[Finding]:
    pages = [file for file in change.files if is_docs(file.path) and file.added]
    if pages and any(is_source(file.path) for file in change.files):
        first = pages[0]
        yield _praise(first.path, first.added[0].number, "docs", "The docs change with the code.")


def _lighter(change: Change) -> Iterator[Finding]:
    sources = [file for file in change.files if is_source(file.path)]
    added = sum(len(file.added) for file in sources)
    removed = sum(len(file.removed) for file in sources)
    if removed > added + 5:
        most = max(sources, key=lambda file: len(file.removed) - len(file.added))
        line = most.hunks[0].new_start if most.hunks and most.status != "removed" else 0
        yield _praise(
            most.path, line, "lighter", f"It takes more code out ({removed} lines) than in."
        )


def _small(change: Change) -> Iterator[Finding]:
    size = sum(len(file.added) + len(file.removed) for file in change.files)
    placed = [file for file in change.files if file.hunks] or list(change.files)
    if not placed:
        return
    first = placed[0]
    line = first.hunks[0].new_start if first.hunks and first.status != "removed" else 0
    if size <= SMALL:
        yield _praise(
            first.path,
            line,
            "small",
            f"It is small, {pluralize(size, 'line')}, and can be read in one sitting.",
        )
    elif any(is_test(path) for path in change.paths):
        tests = next(path for path in change.paths if is_test(path))
        yield _praise(tests, 0, "tests", "Tests change along with the code.")
