"""Certificates made for a test, each signed with its own key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)

from evalmeta.org.serving.endpoint import Certificate

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["make_certificate"]


def make_certificate(
    folder: Path,
    *,
    host: str = "localhost",
    address: str = "127.0.0.1",
    lock: str = "",
    days: int = 1,
    is_weak: bool = False,
) -> Certificate:
    """Write a certificate for a host and an address with its key into a folder.

    The key is behind the passphrase `lock`. The certificate expires after some days, which may be negative. Servers
    refuse a key that `is_weak`.
    """
    curve, name = (ec.SECP192R1() if is_weak else ec.SECP256R1()), x509.Name([])
    key = ec.generate_private_key(curve)
    names = x509.SubjectAlternativeName([x509.DNSName(host), x509.IPAddress(ip_address(address))])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=9))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(names, critical=True)
        .sign(key, SHA256())
    )
    hidden: KeySerializationEncryption = BestAvailableEncryption(lock.encode()) if lock else NoEncryption()
    folder.mkdir(exist_ok=True)
    (folder / "server.crt").write_bytes(signed.public_bytes(Encoding.PEM))
    (folder / "server.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden))
    return Certificate(folder / "server.crt", folder / "server.key")
