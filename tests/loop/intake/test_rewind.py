"""Going back to a wave: files as well, exactly as listed, and nothing is lost."""

from __future__ import annotations

import pytest

from cockpit.core.errors import IllegalTransition, NotFound
from cockpit.loop.rewind.apply_rewind import bring_back, list_rewound, rewind
from cockpit.loop.rewind.plan_rewind import plan_rewind
from cockpit.store.journal import journal
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.verify_tables import verify_tables
from cockpit.store.sessions import sessions

pytestmark = pytest.mark.slow


async def test_a_session_goes_back_with_its_files_and_forward_again(opened, fix, project):
    original = (project / "calc.py").read_bytes()
    async with opened() as runtime:
        store, place = runtime.store, runtime.place
        source = await runtime.start("fix add", model=fix, policy="all", interactive=False)
        assert (await runtime.run(source)).status == "completed"
        written = (project / "calc.py").read_bytes()
        assert written != original
        session = store.read_now(lambda c: sessions.load(c, source))

        plan = await plan_rewind(store, source, 1)
        assert [(each.path, each.content) for each in plan.files] == [("calc.py", original)]
        assert all("not undone" in each for each in plan.stays)
        assert (project / "calc.py").read_bytes() == written, "a plan changes nothing"
        with pytest.raises(IllegalTransition):
            await plan_rewind(store, source, 9)

        # A file that changed after it was listed stays as it is, and is named.
        (project / "calc.py").write_bytes(written + b"# mine\n")
        done = await rewind(store, place, plan)
        assert done.files == ()
        assert done.stays[-1] == "calc.py: it changed meanwhile, and stays as it is."
        assert (project / "calc.py").read_bytes() == written + b"# mine\n"
        (stays,) = [
            each for each in (await plan_rewind(store, source, 1)).stays if "calc.py:" in each
        ]
        assert "changed since" in stays

        (project / "calc.py").write_bytes(written)
        done = await rewind(store, place, await plan_rewind(store, source, 1))
        assert done.files == ("calc.py",)
        assert (project / "calc.py").read_bytes() == original
        assert done.session_id in list_rewound(place)
        assert store.read_now(lambda c: sessions.load(c, source)) == session
        forked = store.read_now(lambda c: sessions.load(c, done.session_id))
        assert forked.status == "waiting"
        assert (await plan_rewind(store, source, 1)).files == (), (
            "it has its earlier content already"
        )

        back = await bring_back(store, place, done.session_id)
        assert (back.session_id, back.files, back.stays) == (source, ("calc.py",), ())
        assert (project / "calc.py").read_bytes() == written
        assert done.session_id not in list_rewound(place)
        with pytest.raises(NotFound):
            await bring_back(store, place, done.session_id)
        rows = store.read_now(
            lambda c: [r for r in journal.rows(c) if r.action == Action.SESSION_REWOUND]
        )
        assert [(r.detail.forward, r.detail.files) for r in rows] == [
            (False, ()), (False, ("calc.py",)), (True, ("calc.py",)),
        ]  # fmt: skip
        assert store.read_now(verify_tables).faults == ()
