"""One of several processes that decide, or end, the same adaptation.

``adapt_racer.py DATABASE PROFILE VERB [PROPOSAL]``: waits for a line on stdin, acts, prints how it went.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from cockpit.access.principals import PERSON
from cockpit.core.errors import CockpitError
from cockpit.loop.decisions import profile_change_expiry
from cockpit.loop.decisions.decide_proposal import decide_proposal
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx


def main() -> None:
    database, profile, verb, proposal = (*sys.argv[1:], "")[:4]
    settings = RuntimeSettings()

    def act(tx: Tx) -> str:
        if verb == "begin":
            return str(profile_change_expiry.pin_profile(tx, settings, profile).version)
        if verb == "rollback":
            return str(
                profile_change_expiry.roll_back_profile(tx, settings, profile, PERSON).version
            )
        verdict = "rejected" if verb == "reject" else "approved"
        outcome = decide_proposal(tx, settings, proposal, verdict, PERSON, kind="profile")
        if verb == "die before":
            os.kill(os.getpid(), signal.SIGKILL)
        return outcome.status

    with Store.open(Path(database)) as store:
        print("ready", flush=True)
        sys.stdin.readline()
        if verb == "die after":
            store.on_commit(lambda: os.kill(os.getpid(), signal.SIGKILL))
        try:
            print(store.write_now(act), flush=True)
        except CockpitError as error:
            print(error.code, flush=True)


if __name__ == "__main__":
    main()
