"""``cockpit --connect``: the screen of another machine in a terminal of this one."""
