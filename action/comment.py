"""Write a Markdown report into one comment on a pull request: `python comment.py REPORT NAME`.

The first line of the comment is an HTML comment with the name. A later call with the same name replaces the text.
GitHub Actions sets the environment variables that are read here.
"""

from __future__ import annotations

import json
import os
import sys
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# GitHub refuses comments that are longer.
MAX_CHARS: Final = 65_536
PAGE_SIZE: Final = 100
MAX_PAGES: Final = 50
SECONDS: Final = 30
# The token of a pull request from a fork can only read.
READ_ONLY: Final = (403, 404)


def main(report: str, name: str, environment: Mapping[str, str] = os.environ) -> int:
    """Create or replace the comment, and return the exit code."""
    try:
        event = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
        number = int(event["pull_request"]["number"])
        api = GitHub(environment)
        body = comment_body(Path(report).read_text(encoding="utf-8"), name, environment)
        where = f"issues/{number}/comments"
        found = next((each for each in api.comments(where) if is_ours(each, name)), None)
        if found is None:
            api.send("POST", where, {"body": body})
        else:
            api.send("PATCH", f"issues/comments/{found['id']}", {"body": body})
    except HTTPError as error:
        if error.code in READ_ONLY:
            print("::notice::The comment was not written: the job has no permission `pull-requests: write`.")
            return 0
        return fail(f"GitHub answered {error.code}")
    except (URLError, HTTPException, OSError, ValueError, KeyError, TypeError) as error:
        return fail(f"{type(error).__name__}: {error}")
    return 0


def fail(why: str) -> int:
    """Print why the comment was not written, on one line."""
    print(f"::error::The comment was not written: {' '.join(why.split())}")
    return 1


def marker(name: str) -> str:
    """Return the first line of the comment with this name."""
    return f"<!-- evalmeta {plain(name)} -->"


def plain(name: str) -> str:
    """Return a name without markup; two hyphens would end the HTML comment."""
    return "".join(char if char.isalnum() or char in "._ " else "_" for char in name)


def comment_body(report: str, name: str, environment: Mapping[str, str]) -> str:
    """Return the text of the comment: the marker, the name, the report, and a link to the job with all reports."""
    server, repository, run = (
        environment.get(key, "") for key in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
    )
    link = f"\n[All reports of this job]({server}/{repository}/actions/runs/{run})\n" if run else ""
    return f"{marker(name)}\n## {plain(name)}\n\n{report}"[: MAX_CHARS - len(link)] + link


def is_ours(comment: Mapping[str, object], name: str) -> bool:
    """Return whether a job wrote the comment: a person can write the marker too."""
    author = comment.get("user")
    is_bot = isinstance(author, dict) and author.get("type") == "Bot"
    return is_bot and str(comment.get("body")).startswith(marker(name))


class GitHub:
    """The REST API of the repository that the job belongs to."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._url = f"{environment['GITHUB_API_URL']}/repos/{environment['GITHUB_REPOSITORY']}"
        self._headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {environment['GITHUB_TOKEN']}",
            "Content-Type": "application/json",
            "User-Agent": "evalmeta",
            "X-GitHub-Api-Version": "2022-11-28",
        }

    def comments(self, path: str) -> Iterator[dict[str, object]]:
        """Yield the comments, oldest first, page by page."""
        for page in range(1, MAX_PAGES + 1):
            found = self.send("GET", f"{path}?per_page={PAGE_SIZE}&page={page}")
            comments = found if isinstance(found, list) else []
            yield from comments
            if len(comments) < PAGE_SIZE:
                return

    def send(self, method: str, path: str, body: Mapping[str, str] | None = None) -> object:
        """Send a request, and return the JSON of the response."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._url}/{path}", data, self._headers, method=method)  # noqa: S310 - GitHub's own URL
        with urlopen(request, timeout=SECONDS) as response:  # noqa: S310 - as above
            return json.load(response)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
