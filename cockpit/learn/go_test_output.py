"""The output of ``go test``: as JSON, with ``-v``, and the short form that names only failures."""

from __future__ import annotations

import json
import re

from cockpit.learn.test_counts import Counts

_CASE = re.compile(r"^( *)--- (PASS|FAIL|SKIP): (\S+) \(", re.MULTILINE)
_PACKAGE = re.compile(r"^(ok|FAIL)[ \t]+(\S+)[ \t]+(\(cached\)|[\d.]+s|\[[a-z ]+\])", re.MULTILINE)
_NO_TESTS = re.compile(r"^(?:\?[ \t]+\S+[ \t]+\[no test files\])$", re.MULTILINE)


def read(output: str) -> Counts | None:
    """Return the counts; None when this is no output of ``go test``.

    A test with subtests counts once. Without ``-v`` passing tests are not named, and packages count.
    """
    if '"Action":' in output:
        return _json(output)
    cases = [(len(lead), verdict, name) for lead, verdict, name in _CASE.findall(output)]
    packages = _PACKAGE.findall(output)
    if not cases and not packages:
        return Counts(ran=False) if _NO_TESTS.search(output) else None
    broken = any(verdict == "FAIL" for verdict, _, _ in packages)
    first = _first([name for _, verdict, name in cases if verdict == "FAIL"])
    package = next((name for verdict, name, _ in packages if verdict == "FAIL"), "")
    named = f"{package}: {first}" if first and package else first or package
    if "=== RUN" in output:
        top = [verdict for lead, verdict, _ in cases if lead == 0]
        return Counts(
            top.count("PASS"), top.count("FAIL"), top.count("SKIP"), named, bool(top), broken
        )
    passed = sum(verdict == "ok" for verdict, _, _ in packages)
    return Counts(
        passed=passed,
        failed=sum(verdict == "FAIL" for verdict, _, _ in packages),
        first=named if broken or first else "",
        broken=broken,
        ran=any(not state.startswith("[") for _, _, state in packages),
        counted="packages",
    )


def _json(output: str) -> Counts | None:
    ended: dict[tuple[str, str], str] = {}
    failed: list[str] = []
    for line in output.splitlines():
        try:
            event = json.loads(line) if line.startswith("{") else None
        except ValueError:
            continue  # a line that was cut
        if not isinstance(event, dict) or event.get("Action") not in ("pass", "fail", "skip"):
            continue
        package, test = str(event.get("Package", "")), str(event.get("Test", ""))
        ended[package, test] = str(event["Action"])
        if event["Action"] == "fail" and test:
            failed.append(f"{package}: {test}")
    if not ended:
        return None
    top = [verdict for (_, test), verdict in ended.items() if test and "/" not in test]
    broken = any(verdict == "fail" for verdict in ended.values())
    lost = next((package for (package, _), verdict in ended.items() if verdict == "fail"), "")
    first = failed[0] if failed else lost
    return Counts(top.count("pass"), top.count("fail"), top.count("skip"), first, bool(top), broken)


def _first(names: list[str]) -> str:
    """The first that failed, as deep as it goes: a test fails because of its subtest."""
    first = names[0] if names else ""
    for name in names[1:]:
        if name.startswith(f"{first}/"):
            first = name
    return first
