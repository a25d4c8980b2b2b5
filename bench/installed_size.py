"""How large cockpit is on the disk: installed by the project's own files, after it ran the demo.

The environment is new and in a temporary folder; pip takes packages from where it is configured to, and
does not count itself. Modules that the demo uses have compiled themselves, as after any install by ``make``
or ``uv``; another row compiles all, as pip does when it is not told otherwise.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Row, row

ROOT = Path(__file__).resolve().parent.parent
_MAKERS = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "wheel")
"""What a new environment has of its own."""


def rows() -> list[Row]:
    """The table of this bench."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        environment = {**os.environ, "COCKPIT_CONFIG_DIR": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        source = place / "source"
        skipped = shutil.ignore_patterns(".venv", ".git", ".*_cache", "__pycache__", ".cockpit")
        shutil.copytree(ROOT, source, ignore=skipped)
        packages = _install(place, source, environment)
        bare = _measure(packages)
        _run_demo(place, environment)
        used = _measure(packages)
        python = place / "venv" / "bin" / "python"
        _run(
            [str(python), "-m", "compileall", "-q", str(packages)], place, environment, check=False
        )
        return [
            row("packages as they are installed", bare, "MB"),
            row("… after the demo", used, "MB", most=150),
            row("… with all of them compiled, as pip does by itself", _measure(packages), "MB"),
        ]


def _install(place: Path, source: Path, environment: dict[str, str]) -> Path:
    """Install as ``make demo`` does, but not as editable; returns the folder of the packages."""
    script = (source / ".ci" / "install").read_text(encoding="utf-8")
    (source / ".ci" / "install").write_text(script.replace(" --editable ", " "), encoding="utf-8")
    without_uv = {**environment, "PATH": os.pathsep.join(_path_without("uv"))}
    venv = str(place / "venv")
    _run(["sh", ".ci/install", sys.executable, venv, "."], source, without_uv)
    return next((place / "venv" / "lib").glob("python*")) / "site-packages"


def _path_without(program: str) -> list[str]:
    folders = os.environ["PATH"].split(os.pathsep)
    return [folder for folder in folders if not Path(folder, program).exists()]


def _run_demo(place: Path, environment: dict[str, str]) -> None:
    _run([str(place / "venv" / "bin" / "cockpit"), "demo"], place, environment)


def _measure(packages: Path) -> float:
    """Megabytes (10^6) on the disk, as ``du`` counts them."""
    kept = [entry for entry in packages.iterdir() if not entry.name.startswith(_MAKERS)]
    listed = subprocess.run(["du", "-skc", *kept], check=True, capture_output=True, text=True)
    return int(listed.stdout.splitlines()[-1].split()[0]) * 1024 / 1e6


def _run(argv: list[str], cwd: Path, environment: dict[str, str], *, check: bool = True) -> None:
    done = subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(argv)} ended with {done.returncode}: {done.stderr[-800:]}")
