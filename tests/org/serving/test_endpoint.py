from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import UsageError
from evalmeta.org.serving.endpoint import Certificate
from org.certificates import make_certificate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_usable_certificate_is_accepted_by_clients_that_trust_it(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    assert [certificate.refusal(host) for host in ("127.0.0.1", "localhost")] == ["", ""]
    assert not certificate.is_trusted("localhost")


def test_a_certificate_for_another_host_is_refused(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    assert "not valid for 'org.example'" in certificate.refusal("org.example")
    assert "not valid for '192.0.2.7'" in certificate.refusal("192.0.2.7")


def test_a_certificate_that_has_expired_is_refused(tmp_path: Path) -> None:
    assert make_certificate(tmp_path, days=-1).refusal("localhost") == "certificate has expired"


@pytest.mark.parametrize(
    ("choose", "message"),
    [
        (lambda ours, _: Certificate(ours.certfile / "x", ours.keyfile), "--certfile .* cannot be read: Not a dir"),
        (lambda ours, _: Certificate(ours.certfile, ours.keyfile.with_name("x")), "--keyfile .* cannot be read: No su"),
        (lambda ours, _: Certificate(ours.keyfile, ours.keyfile), "--certfile .* contains no valid certificate in PEM"),
        (lambda ours, _: Certificate(ours.certfile, ours.certfile), "--keyfile .* contains no valid private key"),
        (lambda ours, other: Certificate(ours.certfile, other.keyfile), "does not belong to the certificate in "),
        (lambda _, other: make_certificate(other.certfile.parent, lock="x"), "protected by a passphrase"),
        (lambda _, other: make_certificate(other.certfile.parent, is_weak=True), "cannot be used: ee key too small"),
    ],
)
def test_a_file_that_cannot_be_used_is_reported(
    tmp_path: Path, choose: Callable[[Certificate, Certificate], Certificate], message: str
) -> None:
    ours, other = make_certificate(tmp_path / "ours"), make_certificate(tmp_path / "other")
    with pytest.raises(UsageError, match=message):
        choose(ours, other).context()
