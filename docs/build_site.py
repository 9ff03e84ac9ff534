"""Builds the documentation site in build/docs/site and fails if a link is broken.

    python docs/build_site.py [FOLDER]   build in FOLDER instead of build/docs

The pages are docs/, the pages of the validation rules and the maintainers' files of the top level. Links between them
keep working; links to other files of the repository become plain text, because the site does not contain these files.
docs/home.md is the first page. The navigation comes from docs/index.md, which lists all pages.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RULES = "src/evalmeta/validation/pages"
LINK = re.compile(r"(!?)\[([^\[\]]*)\]\((?!https?:|#|mailto:)([^()#\s]*)(#[^()\s]*)?\)")
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```(\w+)(?: [^=\n]*)?$", re.MULTILINE)
NAME = re.compile(r"^`([^`\n]+)`:\n\n(?=```\w+ title=\"\1\"\n)", re.MULTILINE)


def main() -> int:
    """Build the site and return the exit code."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/docs").resolve()
    stage(folder)
    return build(folder)


def build(folder: Path) -> int:
    """Turn the pages of a folder into HTML, report broken links, and return the exit code."""
    zensical = Path(sys.executable).parent / "zensical"
    command = [zensical, "build", "--strict", "--clean", "--config-file", folder / "zensical.toml"]
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    print((done.stdout + done.stderr).partition("Traceback")[0].rstrip())
    if done.returncode == 0:
        print(f"Built {folder / 'site'}. To read it: {Path(sys.executable).name} -m http.server -d {folder / 'site'}")
    return done.returncode


def stage(folder: Path) -> None:
    """Write the pages and the settings of the site into the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    places = list_pages()
    for source, place in places.items():
        target = folder / "pages" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        # zensical needs a blank line before a code block, and only a language or a title on its first line. It shows
        # the title; the line with the name of the file above is for GitHub.
        text = NAME.sub("", FENCE.sub(r"\n```\1", _relink(source.read_text(encoding="utf-8"), source, places)))
        target.write_text(text, encoding="utf-8")
    for file in [*(ROOT / "docs").glob("*.svg"), *(ROOT / "docs").glob("*.css")]:
        shutil.copy(file, folder / "pages")
    shutil.copytree(ROOT / "docs/screenshots", folder / "pages/screenshots")
    settings = (ROOT / "docs/zensical.toml").read_text(encoding="utf-8")
    navigation = f"[project]\nnav = {_navigation()}\n"
    (folder / "zensical.toml").write_text(settings.replace("[project]\n", navigation, 1), encoding="utf-8")


def list_pages() -> dict[Path, str]:
    """Return the place in the site of every page, by its file."""
    docs = ROOT / "docs"
    places = {page: page.relative_to(docs).as_posix() for page in sorted(docs.rglob("*.md"))}
    places |= {docs / "home.md": "index.md", docs / "index.md": "pages.md"}
    places |= {page: f"rules/{page.name}" for page in sorted((ROOT / RULES).glob("*.md"))}
    top = ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY")
    places |= {ROOT / f"{name}.md": f"{name.lower()}.md" for name in top}
    places[ROOT / "metadata-samples/README.md"] = "samples.md"
    return places


def _relink(text: str, source: Path, places: dict[Path, str]) -> str:
    here = Path(places[source]).parent

    def move(link: re.Match[str]) -> str:
        target = (source.parent / link[3]).resolve()
        if not link[3] or not target.exists() or link[1]:
            return link[0]
        if target not in places:
            return link[2]
        return f"[{link[2]}]({os.path.relpath(places[target], here)}{link[4] or ''})"

    return LINK.sub(move, text)


def _navigation() -> str:
    """Return the sections of docs/index.md with the pages that they link to first, as a TOML value."""
    index = ROOT / "docs/index.md"
    text = index.read_text(encoding="utf-8")
    places = list_pages()
    missing = set(places)
    missing.remove(index.with_name("home.md"))
    missing.remove(index)
    parts = SECTION.split(text)
    sections = ['{"Home" = "index.md"}', '{"All pages" = "pages.md"}']
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        found = ((link[2], (index.parent / link[3]).resolve()) for link in LINK.finditer(body) if link[3])
        pages = []
        for name, page in found:
            if page in missing:
                missing.remove(page)
                pages.append(f"{{{json.dumps(name)} = {json.dumps(places[page])}}}")
        if pages:
            sections.append(f"{{{json.dumps(title)} = [{', '.join(pages)}]}}")
    return f"[{', '.join(sections)}]"


if __name__ == "__main__":
    sys.exit(main())
