"""``python -m cockpit`` is ``cockpit``."""

from __future__ import annotations

import sys

from cockpit.cli import main

sys.exit(main())
