"""A copy of evalmeta with one line broken, and a Python of its own that imports the copy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[2]
SECONDS = 120
_FAILED = re.compile(r"^FAILED tests/(\S+?::\w+)", re.MULTILINE)


class Break(NamedTuple):
    """One way to break the code, and the tests that must fail then."""

    what: str
    file: str  # relative to src/evalmeta
    old: str  # stands exactly once in the file
    new: str
    tests: tuple[str, ...]  # ids below tests/, without parameters


class Outcome(NamedTuple):
    """Which tests failed, and all that pytest printed."""

    failed: frozenset[str]
    output: str
    code: int


def copy_source(folder: Path) -> Path:
    """Copy src and xsd, compiled modules included, to a folder, with a Python that imports this copy."""
    shutil.copytree(ROOT / "src", folder / "src", copy_function=_link)
    shutil.copytree(ROOT / "xsd", folder / "xsd", copy_function=_link)
    scripts, site = folder / "bin", folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    scripts.mkdir()
    site.mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix) / 'bin'}\nversion = {sys.version.split()[0]}\n")
    (scripts / "python").symlink_to(Path(sys.executable).resolve())
    program = scripts / "evalmeta"
    program.write_text(f"#!{scripts / 'python'}\nfrom evalmeta.__main__ import main\nmain()\n")
    program.chmod(0o755)
    (site / "copy.pth").write_text(
        f"{folder / 'src'}\nimport site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    )
    return scripts / "python"


def apply(broken: Break, folder: Path) -> None:
    """Break the copy; fail if the text to replace does not stand exactly once in the file, or the result is no code."""
    file = folder / "src" / "evalmeta" / broken.file
    text = file.read_text(encoding="utf-8")
    times = text.count(broken.old)
    assert times == 1, f"the text to break stands {times} times in {broken.file}; correct the break:\n{broken.old}"
    changed = text.replace(broken.old, broken.new)
    if file.suffix == ".py":
        compile(changed, broken.file, "exec")
    file.unlink()  # it is a link to the original
    file.write_text(changed, encoding="utf-8")


def run_tests(python: Path, tests: Iterable[str], *, seconds: int = SECONDS) -> Outcome:
    """Run tests of this repository with another Python."""
    command = [python, "-m", "pytest", "--tb=short", "-rf", "-p", "no:cacheprovider", f"--timeout={seconds}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST"))}
    done = subprocess.run(
        [*command, "--override-ini=timeout_method=signal", f"--rootdir={ROOT}", *(f"tests/{test}" for test in tests)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return Outcome(frozenset(_FAILED.findall(done.stdout)), done.stdout + done.stderr, done.returncode)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
