"""Events for pages that follow runs, and how much of the database they need."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.api.servers import make_token
from evalmeta.model.login import ADMIN, User
from evalmeta.store.database import open_database
from evalmeta.store.users import Holder, Sessions, Users
from evalmeta.viewer import live
from evalmeta.viewer.live import LiveRuns
from evalmeta.viewer.run_states import ALL_RUNS, read_states

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Message

    from evalmeta.package.project import Project
    from viewer.conftest import Browser

QUICK = 0.01


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "VIEW_POLL_SECONDS", QUICK)


def user_of(project: Project, name: str) -> User:
    """Return a user with a token."""
    token = make_token(project, username=name)
    with open_database(project.store) as database:
        user = Users(database).user_of(token, now=time.time())
    assert user
    return user


def session_of(project: Project, user: User = ADMIN) -> str:
    """Return a session of a user."""
    with open_database(project.store) as database:
        return Sessions(database).add(Holder(user.id), now=time.time())


def state_of(project: Project, user: User = ADMIN) -> str:
    """Return the state of a user's runs."""
    with open_database(project.store) as database:
        return read_states(database).of(user)


def add_run(project: Project, run_id: str, *, user: User = ADMIN, status: str = "COMPLETED", ended: float = 1) -> None:
    """Store a run without results, in as few words as the table allows."""
    with open_database(project.store) as database:
        database.execute(
            """
            INSERT INTO run (id, definition, kind, content, subject_name, status, options, total, user_id, suite,
                             branch, confirms, created_at, ended_at)
            VALUES (?, 'X', 'definition', '', 'A', ?, '', 1, ?, '', '', '', 1, ?)
            """,
            (run_id, status, user.id, ended),
        )


class Page:
    """A page that follows runs; `events` has what it received."""

    def __init__(self, runs: LiveRuns, session: str, user: User = ADMIN, *, known: str) -> None:
        self.events: list[str] = []
        with open_database(runs.store) as database:
            signed = Sessions(database).hash_of(session)
        self.reply = runs.stream(signed, user, known)

    def open(self) -> None:
        """Begin to receive events."""
        self.gone = asyncio.Event()
        self.task = asyncio.create_task(self.reply({"type": "http"}, self._receive, self._send))

    async def close(self) -> None:
        """Leave the page."""
        self.gone.set()
        await self.task

    async def _receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if text := message.get("body", b"").decode():
            self.events.append(text)

    async def receives(self, number: int) -> None:
        """Wait for a number of events, the first line of the stream included."""
        async with asyncio.timeout(30):
            while len(self.events) < number:
                await asyncio.sleep(QUICK)


async def rest() -> None:
    """Let the database be looked at some times."""
    await asyncio.sleep(10 * QUICK)


def test_a_page_hears_of_what_changed_since_it_was_made_and_later(project: Project) -> None:
    async def go() -> list[str]:
        before = state_of(project)
        add_run(project, "1")
        page = Page(LiveRuns(project.store), session_of(project), known=before)
        page.open()
        await page.receives(2)
        first = state_of(project)
        add_run(project, "2", status="NEW")
        await page.receives(3)
        await rest()
        await page.close()
        assert page.events[1] == f"id: {first}\nevent: change\ndata: runs\n\n"
        return page.events

    events = asyncio.run(go())
    assert events[0] == "retry: 1000\n\n"
    assert events[2] == f"id: {state_of(project)}\nevent: change\ndata: runs\n\n"
    assert len(events) == 3


def test_a_user_hears_only_of_the_own_runs(project: Project) -> None:
    async def go() -> tuple[int, int]:
        ann, runs = user_of(project, "ann"), LiveRuns(project.store)
        pages = [Page(runs, session_of(project, user), user, known=state_of(project, user)) for user in (ann, ADMIN)]
        for page in pages:
            page.open()
        add_run(project, "1")
        await pages[1].receives(2)
        await rest()
        numbers = len(pages[0].events), len(pages[1].events)
        add_run(project, "2", user=ann)
        await pages[0].receives(2)
        for page in pages:
            await page.close()
        return numbers

    assert asyncio.run(go()) == (1, 2)


def test_states_follow_new_changed_and_deleted_runs_and_results(project: Project) -> None:
    add_run(project, "1", status="IN_PROGRESS", ended=None)
    states = [state_of(project)]
    with open_database(project.store) as database:
        for sql in (
            "INSERT INTO case_result VALUES ('1', 1, 1, 'PASS', '')",
            "UPDATE run SET status = 'COMPLETED', ended_at = 2",
            "UPDATE run SET ended_at = 3",
            "DELETE FROM case_result",
            "DELETE FROM run",
        ):
            database.execute(sql)
            states.append(state_of(project))
    # Results of a run that is over do not change by themselves.
    assert [before != after for before, after in pairwise(states)] == [True] * 3 + [False, True]


@pytest.mark.sqlite
def test_runs_that_are_over_are_counted_by_an_index(project: Project) -> None:
    with open_database(project.store) as database:
        [*_, plan] = database.query(f"EXPLAIN QUERY PLAN {ALL_RUNS}")
    assert plan[-1] == "SCAN run USING COVERING INDEX run_by_user"


@pytest.mark.slow
@pytest.mark.parametrize("pages", [1, 100])
def test_one_look_at_the_database_serves_all_pages(
    project: Project, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    monkeypatch.setattr(limits, "MAX_USER_STREAMS", 100)
    looks = []
    # Counted by looks, not by time: after so many of them, all pages close.
    monkeypatch.setattr(live, "read_states", lambda database: looks.append(1) or read_states(database))

    async def go() -> None:
        runs, session = LiveRuns(project.store), session_of(project)
        known = state_of(project)
        opened = [Page(runs, session, known=known) for _ in range(pages)]
        for page in opened:
            page.open()
        add_run(project, "1")
        for page in opened:
            await page.receives(2)
        at = len(looks)
        while len(looks) < at + 10:
            await asyncio.sleep(QUICK)
        for page in opened:
            await page.close()
        assert {len(page.events) for page in opened} == {2}
        # Nobody follows any more, so that nobody looks.
        await rest()
        at = len(looks)
        await rest()
        assert len(looks) == at

    began = time.monotonic()
    asyncio.run(go())
    assert len(looks) <= (time.monotonic() - began) / QUICK + 1


def test_streams_of_one_user_take_no_room_of_others(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_USER_STREAMS", 3)

    async def go() -> None:
        runs, ann = LiveRuns(project.store), User("005", "Ann", "ann")
        pages = [Page(runs, "", known="") for _ in range(5)]
        assert [page.reply is not None for page in pages] == [True] * 3 + [False] * 2
        assert Page(runs, "", ann, known="").reply
        pages[0].open()
        await pages[0].close()
        assert Page(runs, "", known="").reply

    asyncio.run(go())


def test_users_share_the_connections_that_there_are(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "max_connections", lambda: 16)

    async def go() -> list[int]:
        runs = LiveRuns(project.store)
        users = [User(name, name, name) for name in ("ann", "bob", "cho")]
        return [sum(Page(runs, "", user, known="").reply is not None for _ in range(20)) for user in users]

    assert asyncio.run(go()) == [8, 4, 2]


def test_a_stream_ends_with_its_session(project: Project) -> None:
    async def go() -> None:
        runs, session = LiveRuns(project.store), session_of(project)
        page, other = (Page(runs, found, known=state_of(project)) for found in (session, session_of(project)))
        page.open()
        other.open()
        with open_database(project.store) as database:
            Sessions(database).end(session)
        async with asyncio.timeout(30):
            await page.task
        assert not other.task.done()
        await other.close()

    asyncio.run(go())


def test_a_stream_ends_before_the_server_gives_up_on_a_silent_browser(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert limits.VIEW_STREAM_SECONDS < limits.PIECE_SECONDS
    monkeypatch.setattr(limits, "VIEW_STREAM_SECONDS", 0.1)

    async def go() -> list[str]:
        page = Page(LiveRuns(project.store), session_of(project), known=state_of(project))
        page.open()
        async with asyncio.timeout(30):
            await page.task
        return page.events

    assert asyncio.run(go()) == ["retry: 1000\n\n"]


def test_a_browser_that_calls_again_tells_what_it_knows(browser: Browser, run: Callable[..., int]) -> None:
    run()
    [address] = browser.page("/view").split('data-live="')[1:]
    address = address.partition('"')[0]
    [known] = address.split("/view/live?known=")[1:]
    run()
    for headers in ({}, {"last-event-id": known}):
        with browser.client.stream("GET", address, headers=headers) as reply:
            assert next(line for line in reply.iter_lines() if line.startswith("event")) == "event: change"


def test_too_many_streams_of_a_user_are_refused(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    browser.log_in()
    monkeypatch.setattr(limits, "MAX_USER_STREAMS", 0)

    assert browser.client.get("/view/live").status_code == 429
