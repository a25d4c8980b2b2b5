"""The ``python3`` that programs of the tests find on PATH: that of the tests, with no package installed.

Whatever is installed for a machine's own interpreter may load at each start, which is then four times as
dear; and where PATH has a shim, as pyenv's, each start begins with a dozen shells.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

_VARIABLE = "COCKPIT_TEST_PYTHON"
"""The environment variable that names its folder, for the run's other processes."""


def install() -> None:
    """Put it on PATH, unless another process of this test run has."""
    if _VARIABLE in os.environ:
        return
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="python-")))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    base = Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()
    (folder / "bin").mkdir()
    (folder / "pyvenv.cfg").write_text(
        f"home = {base.parent}\ninclude-system-site-packages = false\n", encoding="utf-8"
    )
    for name in ("python", "python3"):
        (folder / "bin" / name).symlink_to(base)
    os.environ[_VARIABLE] = str(folder)
    os.environ["PATH"] = os.pathsep.join((str(folder / "bin"), os.environ["PATH"]))
