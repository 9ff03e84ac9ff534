"""The direct dependencies: few, and each for a reason."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REASONS = {
    "click": "the command line",
    "httpx": "requests to orgs, agents and models",
    "jinja2": "pages and HTML reports",
    "jsonpath-ng": "custom criteria",
    "jsonschema": "JSON Schema of answers",
    "lxml": "reading XML with the place of every element",
    "orjson": "JSON of large runs",
    "pathspec": ".forceignore",
    "pydantic": "settings",
    "python-multipart": "logins and forms of a served org",
    "pyyaml": "test specs",
    "rich": "tables and progress in terminals",
    "starlette": "the org's interface, embedded and served",
    "uvicorn": "serving the org, the viewer and the receiver of traces",
    "watchfiles": "`evalmeta run --watch`",
    "xmlschema": "the schemas of definitions",
}
# CVE-2024-47874 is fixed in 0.40.0, CVE-2025-54121 in 0.47.2, CVE-2025-62727 in 0.49.1.
STARLETTE = (0, 49, 1)


def lowest_versions() -> dict[str, tuple[int, ...]]:
    found = (re.fullmatch(r"([\w-]+)>=([\d.]+)", each) for each in PROJECT["dependencies"])
    return {each[1]: tuple(map(int, each[2].split("."))) for each in found if each}


def test_each_direct_dependency_has_its_reason() -> None:
    assert {*lowest_versions()} == {*REASONS}
    assert len(PROJECT["dependencies"]) == len(REASONS)


def test_no_version_with_a_known_advisory_of_starlette_is_accepted() -> None:
    assert lowest_versions()["starlette"] >= STARLETTE
