"""Find the project of a hook call without starting git, and without creating anything."""

from __future__ import annotations

import os

from cockpit.core.find_checkout import Checkout
from cockpit.core.find_checkout import find_checkout as find_by_files
from cockpit.core.state_folder import describe_problem


def find_checkout(folder: str) -> Checkout | None:
    """Find the cockpit project that ``folder`` is in, without creating anything.

    Returns None where there is none, or where its state folder is not the user's own.
    """
    try:
        checkout = find_by_files(os.path.realpath(folder))
    except (OSError, ValueError):
        return None  # no path at all
    if checkout is None:
        return None
    if not os.path.isfile(checkout.database) or os.path.islink(checkout.database):
        return None
    return None if describe_problem(checkout.state) else checkout
