from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.org.serving.server import open_log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOG = logging.getLogger("evalmeta.org.anything")


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    for name in ("evalmeta.org", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        for handler in logger.handlers:
            handler.close()
        logger.handlers, logger.propagate = [], True
        logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    "text",
    [
        "00D000000000001!AQ0local.token_SECRET",
        "00D000000000001EAA!SECRET",
        "Authorization: Bearer SECRET",
        "authorization: basic U0VDUkVU-SECRET",
        "eyJhbGciOi.eyJSECRET.SECRET",
        "5Aep861SECRET.abc",
        "force://PlatformCLI::SECRET@example.my.salesforce.com",
        "<SessionHeader><sessionId>SECRET</sessionId>",
        "GET /?access_token=SECRET&x=1",
        "assertion=SECRET",
        "client_secret=SECRET",
        "refresh_token=SECRET",
    ],
)
def test_values_that_look_like_secrets_are_not_logged(tmp_path: Path, text: str) -> None:
    open_log(tmp_path / "logs" / "server.log", to_stderr=False)
    LOG.info("before %s after", text)
    written = (tmp_path / "logs" / "server.log").read_text()
    assert "SECRET" not in written
    assert "before" in written


def test_a_defect_is_written_with_its_traceback_and_without_secrets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    open_log(tmp_path / "server.log", to_stderr=True)
    try:
        int("token 00D000000000001!SECRET")
    except ValueError:
        LOG.exception("it broke")
    written = (tmp_path / "server.log").read_text()
    assert "Traceback" in written
    assert "token [secret]" in written
    assert "SECRET" not in written
    assert capsys.readouterr().err == written


def test_the_file_is_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_LOG_BYTES", 1_000)
    open_log(tmp_path / "server.log", to_stderr=False)
    for _ in range(100):
        LOG.info("x" * 90)
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"server.log", "server.log.1", "server.log.2"}
    assert max(sizes.values()) <= 1_000


def test_only_its_owner_can_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_LOG_BYTES", 1_000)
    open_log(tmp_path / "logs" / "server.log", to_stderr=False)
    for _ in range(20):
        LOG.info("x" * 90)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "logs").iterdir()}
    assert modes == {"server.log": 0o600, "server.log.1": 0o600, "server.log.2": 0o600}
    assert (tmp_path / "logs").stat().st_mode & 0o777 == 0o700


def test_what_the_event_loop_says_is_in_the_log_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_log(tmp_path / "server.log", to_stderr=False)
    logging.getLogger("asyncio").error("Fatal error: protocol.data_received() call failed.")
    assert "Fatal error" in (tmp_path / "server.log").read_text()
    assert capsys.readouterr().err == ""
