"""Adopting again after a crash, and files that are in the way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from sandbox_here import CONFINES

from cockpit.act.own_tools.adopt_tool import AdoptAdapter
from cockpit.loop.runtime import Runtime
from cockpit.store.tools import approved_tools

pytestmark = pytest.mark.slow

CODE = (
    "from cockpit import tool\n\n\n@tool(effects='reads')\ndef double_it(number: int) -> int:\n"
    '    """Double a number."""\n    return number * 2\n'
)
PAYLOAD = {
    "name": "double_it",
    "code_path": ".cockpit/tools/double_it.py",
    "code": CODE,
    "test_path": ".cockpit/tools/tests/test_double_it.py",
    "test": "def test_it():\n    pass\n",
}


async def test_an_adoption_that_was_cut_off_is_completed_once(
    opened: Callable[[str], AbstractAsyncContextManager[Runtime]],
) -> None:
    async with opened("[[turn]]\n") as runtime:
        adapter, ground = AdoptAdapter(runtime.store, runtime.place.home), runtime.engine.ground
        path = runtime.place.root / PAYLOAD["code_path"]
        path.parent.mkdir(parents=True)
        path.write_text(CODE)  # a process died after its first file
        assert await adapter.probe(PAYLOAD, "k", ground) == "not_done"
        if CONFINES:
            for _ in range(2):
                assert (await adapter.perform(PAYLOAD, "k", ground)).status == "success"
            assert len(runtime.store.read_now(approved_tools.select_all)) == 1


async def test_a_file_with_another_content_is_left_as_it_is(
    opened: Callable[[str], AbstractAsyncContextManager[Runtime]],
) -> None:
    async with opened("[[turn]]\n") as runtime:
        path = runtime.place.root / PAYLOAD["code_path"]
        path.parent.mkdir(parents=True)
        path.write_text("mine = 1\n")
        outcome = await AdoptAdapter(runtime.store, runtime.place.home).perform(
            PAYLOAD, "k", runtime.engine.ground
        )
        assert outcome.failure == "conflict"
        assert path.read_text() == "mine = 1\n"
        assert not (runtime.place.root / PAYLOAD["test_path"]).exists()
        assert runtime.store.read_now(approved_tools.select_all) == []
