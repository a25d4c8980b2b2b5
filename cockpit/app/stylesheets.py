"""The stylesheets of the screens, in the order in which Textual applies them."""

from __future__ import annotations

from pathlib import Path

import themes

STYLESHEETS = (themes.STYLESHEET, Path(__file__).with_name("cockpit.tcss"))
