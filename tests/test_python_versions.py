"""Names that Python 3.12 to 3.14 removed are not used: `make versions` needs these Pythons, this test does not.

Source: "What's New In Python" 3.12, 3.13 and 3.14, section "Removed".
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[1]
FILES: Final = [file for folder in ("src", "tests", "benchmarks", "docs") for file in (ROOT / folder).rglob("*.py")]
MODULES: Final = frozenset(
    {
        *("asynchat", "asyncore", "imp", "smtpd", "distutils", "aifc", "audioop", "cgi"),
        *("cgitb", "chunk", "crypt", "imghdr", "mailcap", "msilib", "nis", "nntplib"),
        *("ossaudiodev", "pipes", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib"),
        *("lib2to3",),
    }
)
NAMES: Final = frozenset({
    *(f"ast.{name}" for name in ("Num", "Str", "Bytes", "NameConstant", "Ellipsis")),
    *(
        f"asyncio.{name}"
        for name in (
            *("AbstractChildWatcher", "SafeChildWatcher", "FastChildWatcher", "MultiLoopChildWatcher"),
            *("PidfdChildWatcher", "ThreadedChildWatcher", "get_child_watcher", "set_child_watcher"),
            # They raise an error without a running loop since 3.14, or are deprecated.
            *("get_event_loop", "get_event_loop_policy", "set_event_loop_policy", "iscoroutinefunction"),
        )
    ),
    *(f"importlib.abc.{name}" for name in ("ResourceReader", "Traversable", "TraversableResources")),
    *(f"importlib.{name}" for name in ("find_loader", "resources.Resource", "resources.contents")),
    *(f"pkgutil.{name}" for name in ("ImpImporter", "ImpLoader", "find_loader", "get_loader")),
    *(f"sqlite3.{name}" for name in ("version", "version_info", "OptimizedUnicode", "enable_shared_cache")),
    *(f"unittest.{name}" for name in ("findTestCases", "makeSuite", "getTestCaseNames")),
    *(f"pty.{name}" for name in ("master_open", "slave_open")),
    *(f"locale.{name}" for name in ("format", "resetlocale")),
    *(f"typing.{name}" for name in ("io", "re")),
    *("urllib.parse.Quoter", "ssl.wrap_socket", "ssl.match_hostname", "webbrowser.MacOSX", "datetime.datetime.utcnow"),
    *("tempfile.template", "configparser.SafeConfigParser", "gzip.GzipFile.filename", "re.template", "logging.warn"),
})  # fmt: skip


def removed_names(tree: ast.AST) -> Iterator[str]:
    """Yield the removed modules and names that a module uses, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            dotted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            dotted = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Attribute):
            dotted = [ast.unparse(node)]
        else:
            continue
        is_import = not isinstance(node, ast.Attribute)
        for name in dotted:
            if name in NAMES or (is_import and name.partition(".")[0] in MODULES):
                yield f"line {node.lineno}: {name}"


@pytest.mark.parametrize(
    "code", ["import imp", "from distutils.core import setup", "import ast\nast.Str", "from pkgutil import get_loader"]
)
def test_a_removed_name_is_found(code: str) -> None:
    assert [*removed_names(ast.parse(code))]


@pytest.mark.slow
def test_no_name_is_used_that_a_supported_python_does_not_have() -> None:
    assert len(FILES) > 600
    used = {file.name: [*removed_names(ast.parse(file.read_bytes()))] for file in FILES}
    assert {name: names for name, names in used.items() if names} == {}


@pytest.mark.slow
def test_no_finally_is_left_by_return_break_or_continue() -> None:
    # A SyntaxWarning since Python 3.14 (PEP 765).
    left = [
        f"{file.name}:{jump.lineno}"
        for file in FILES
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(node, ast.Try)
        for statement in node.finalbody
        for jump in [statement]
        if isinstance(jump, ast.Return | ast.Break | ast.Continue)
    ]
    assert left == []
