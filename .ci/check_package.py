"""Build the package, install it where nothing else of this checkout is, and run it there.

Run by ``make check``, without a network: the build backend and the dependencies are those of the environment
that runs this. The wheel is built from the source archive, so both are complete. The new environment sees
only what the wheel requires by name: a dependency that is missing in ``pyproject.toml`` fails here.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("cockpit", "widgets", "themes")
_PATIENCE_S = 300


def main() -> int:
    """Build, compare, install and run; return the exit code."""
    with tempfile.TemporaryDirectory(prefix="cockpit-package-") as place:
        folder = Path(place)
        build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist")]
        run_program("build", [*build, str(ROOT)])
        (wheel,) = (folder / "dist").glob("*.whl")
        compare_with_checkout(wheel)
        program = install(wheel, folder / "installed")
        try_program(program, folder)
        size = wheel.stat().st_size / 1e6
    print(f"{wheel.name}: {size:.1f} MB, complete, installs and runs.")
    return 0


def run_program(
    step: str, argv: list[str], cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Run a program; return its output. Ends the check where it fails."""
    ended = subprocess.run(
        argv,
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        stdin=subprocess.DEVNULL,
    )
    if ended.returncode:
        sys.exit(f"{step} failed ({ended.returncode}):\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def compare_with_checkout(wheel: Path) -> None:
    """End the check unless the wheel has exactly the files of the checkout's packages, and their content."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {
            name: archive.read(name)
            for name in archive.namelist()
            if not name.split("/")[0].endswith(".dist-info")
        }
    expected = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    differences = [
        *(f"missing in the wheel: {name}" for name in sorted(expected.keys() - packed.keys())),
        *(f"not in the checkout: {name}" for name in sorted(packed.keys() - expected.keys())),
        *(
            f"other content: {name}"
            for name in sorted(expected.keys() & packed.keys())
            if expected[name] != packed[name]
        ),
    ]
    if differences:
        sys.exit("The wheel differs from the checkout:\n" + "\n".join(differences))


def install(wheel: Path, place: Path) -> Path:
    """Install the wheel into a new environment at ``place``; return the program.

    Its dependencies are lent by this environment: those that the wheel names, and theirs.
    """
    venv.create(place, with_pip=False, symlinks=True)
    python = str(place / "bin" / "python")
    if uv := shutil.which("uv"):
        argv = [uv, "pip", "install", "--quiet", "--offline", "--python", python]
    else:
        argv = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
        argv += ["--no-index", "--disable-pip-version-check", "--no-compile"]
    run_program("install", [*argv, "--no-deps", str(wheel)])
    (packages,) = place.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
    needed = re.findall(r"^Requires-Dist: (.*)$", text.partition("\n\n")[0], re.MULTILINE)
    for path in lend(needed):
        target = packages / path.name
        if not target.exists():
            target.symlink_to(path)
    return place / "bin" / "cockpit"


def lend(requirements: list[str]) -> Iterator[Path]:
    """Yield the top folders and files of what the requirements name, and of what that requires."""
    waiting = [Requirement(text) for text in requirements]
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement = waiting.pop()
        extras = ("", *requirement.extras)
        for extra in extras:
            key = (requirement.name.casefold().replace("_", "-"), extra)
            if key in seen or not applies(requirement, {"extra": ""}):
                continue
            seen.add(key)
            package = importlib.metadata.distribution(requirement.name)
            if extra == "":
                names = {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}
                yield from (Path(str(package.locate_file(name))) for name in names)
            inner = [Requirement(text) for text in package.requires or ()]
            waiting += [without_marker(each) for each in inner if applies(each, {"extra": extra})]


def applies(requirement: Requirement, environment: Mapping[str, str]) -> bool:
    """Whether the requirement applies to this Python, with this extra."""
    return requirement.marker is None or requirement.marker.evaluate(dict(environment))


def without_marker(requirement: Requirement) -> Requirement:
    """Return the requirement, whose marker applied where it was written."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return Requirement(requirement.name + extras)


def try_program(program: Path, folder: Path) -> None:
    """Run the installed program outside the checkout, with an empty home."""
    home = folder / "home"
    home.mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    env = {**kept, "HOME": str(home)}
    origin = "import cockpit, widgets, themes; print(cockpit.__file__, widgets.__file__, themes.__file__)"
    places = run_program("import", [str(program.with_name("python")), "-c", origin], home, env)
    for path in places.split():
        if program.parents[1] not in Path(path).parents:
            sys.exit(f"{path} was imported in place of what was installed.")
    version = run_program("cockpit --version", [str(program), "--version"], home, env)
    if not re.fullmatch(r"cockpit \d+\.\d+\.\d+\n", version):
        sys.exit(f"cockpit --version prints {version!r}.")
    report = run_program("cockpit demo", [str(program), "demo", "--dir", "sample"], home, env)
    if "verdict" not in report:
        sys.exit(f"cockpit demo prints no report:\n{report}")


if __name__ == "__main__":
    sys.exit(main())
