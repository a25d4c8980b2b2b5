"""The story of a task that lacks a tool: ``capture.pcab`` has IP addresses, and nothing reads it."""

from __future__ import annotations

GOOD_TEST = r"""
import os, tempfile
from parse_pcab import parse_pcab

def test_addresses_come_once_in_order():
    with tempfile.NamedTemporaryFile("w", suffix=".pcab", delete=False) as file:
        file.write("src=10.0.0.7 dst=192.168.1.20\nsrc=10.0.0.7 dst=999.1.1.1\n")
    assert parse_pcab(file.name) == ["10.0.0.7", "192.168.1.20"]
"""
WITHHELD = r"""
import os, tempfile
from parse_pcab import parse_pcab

def test_another_capture():
    with tempfile.NamedTemporaryFile("w", suffix=".pcab", delete=False) as file:
        file.write("src=172.16.9.4 len=3\n")
    assert parse_pcab(file.name) == ["172.16.9.4"]
"""
WEAK_TEST = """
from parse_pcab import parse_pcab

def test_nothing():
    assert parse_pcab("x") is None
"""
WRONG = '''
import re
from cockpit import tool

@tool(effects="reads")
def parse_pcab(path: str) -> list[str]:
    """Extract the IP addresses of a .pcab file.

    Args:
        path: The file, from the project's root.
    """
    return re.findall(r"[0-9.]+", open(path).read())
'''
CANNED = WRONG.replace('re.findall(r"[0-9.]+", open(path).read())', '["10.0.0.7", "192.168.1.20"]')
"""Returns the example's answer for any input."""
RIGHT = '''
import ipaddress
import re
from cockpit import tool

@tool(effects="reads")
def parse_pcab(path: str) -> list[str]:
    """Extract the IP addresses of a .pcab file, each once, in order.

    Args:
        path: The file, from the project's root.
    """
    addresses = {}
    for word in re.findall(r"[0-9.]+", open(path).read()):
        try:
            addresses[str(ipaddress.ip_address(word))] = None
        except ValueError:
            continue
    return list(addresses)
'''
CAPTURE = "PCAB1\nsrc=172.16.4.2 dst=8.8.8.8 len=60\nsrc=8.8.8.8 dst=172.16.4.2 len=1.5\n"
TASK = "/investigate extract the IP addresses from capture.pcab"
PROPOSED = {
    "name": "parse_pcab",
    "purpose": "Extract the IP addresses of a .pcab capture",
    "example_input": "src=10.0.0.7 dst=192.168.1.20",
    "expected_output": '["10.0.0.7", "192.168.1.20"]',
    "reason": "No tool here reads .pcab files.",
}


def turn(when: str, call: str, *, text: str = "", **arguments: str) -> str:
    """Return a turn of a scenario with one call."""
    lines = [f'[[turn]]\nwhen = {{ {when} }}\ntext = """{text}"""\n']
    lines += [f'[[turn.call]]\nname = "{call}"\n']
    lines += [f"arguments.{key} = '''{value}'''\n" for key, value in arguments.items()]
    return "".join(lines)


def growing(number: int, call: str, **arguments: str) -> str:
    """Return round ``number`` of the growth."""
    return turn(f'wave = {number}, task_type = "evolve"', call, **arguments)


def test_round(number: int, source: str, withheld: str = WITHHELD) -> str:
    told = {"name": "parse_pcab", "purpose": "IP addresses of .pcab", "source": source}
    return growing(number, "write_test", **told, withheld=withheld)


test_round.__test__ = False  # type: ignore[attr-defined]

ASKS = turn('task_type = "investigate"', "propose_tool", text="Nothing reads .pcab.", **PROPOSED)
USES = turn(
    'task_type = "investigate", contains = ["The tool parse_pcab is adopted"]',
    "parse_pcab",
    path="capture.pcab",
)
ENDS = turn(
    'task_type = "investigate", contains = ["172.16.4.2"]',
    "finish",
    status="done",
    summary="The addresses are 172.16.4.2 and 8.8.8.8.",
)
GROWS = test_round(1, GOOD_TEST) + growing(2, "write_code", source=RIGHT)
"""Without a round in vain."""
