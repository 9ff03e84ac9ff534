"""Where a server listens, and its certificate if it speaks TLS: the files, and whether clients accept them."""

from __future__ import annotations

import ssl
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


# A handshake has at most this many flights; further ones change nothing.
_FLIGHTS: Final = 6
_OTHER_KEY: Final = "KEY_VALUES_MISMATCH"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The PEM files of a server: the certificate with its chain, and the private key without a passphrase."""

    certfile: Path
    keyfile: Path

    def context(self) -> ssl.SSLContext:
        """Return a context for a server; raise UsageError if a file cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _check_readable("--certfile", self.certfile)
        _check_readable("--keyfile", self.keyfile)
        try:
            ssl.create_default_context(cafile=self.certfile)
        except ssl.SSLError:
            raise UsageError(f"--certfile {self.certfile} contains no valid certificate in PEM format") from None
        try:
            context.load_cert_chain(self.certfile, self.keyfile, password=self._refuse_passphrase)
        except ssl.SSLError as error:
            raise self._unusable_key(error) from None
        return context

    def refusal(self, host: str) -> str:
        """Return why clients that trust the issuer would refuse the certificate for a host; empty if they would not."""
        return _refusal(self.context(), ssl.create_default_context(cafile=self.certfile), host)

    def is_trusted(self, host: str) -> bool:
        """Return whether clients on this machine accept the certificate for a host without further settings."""
        return not _refusal(self.context(), ssl.create_default_context(), host)

    def _refuse_passphrase(self) -> str:
        raise UsageError(
            f"--keyfile {self.keyfile} is protected by a passphrase",
            actions=[f"Write a copy without one: openssl pkey -in {self.keyfile} -out server.key"],
        )

    def _unusable_key(self, error: ssl.SSLError) -> UsageError:
        if error.reason == _OTHER_KEY:
            return UsageError(
                f"the private key in {self.keyfile} does not belong to the certificate in {self.certfile}",
                actions=["Give the files of one pair. The server's own certificate must be the first in --certfile."],
            )
        if error.reason:
            reason = error.reason.replace("_", " ").lower()
            return UsageError(f"the certificate in {self.certfile} cannot be used: {reason}")
        return UsageError(f"--keyfile {self.keyfile} contains no valid private key in PEM format")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server listens.

    Attributes:
        host: the address or name to listen at.
        port: the port; 0 for any free port.
        names: other hosts that are valid in the Host header, each with or without a port.
        certificate: the server's certificate; None without TLS.
    """

    host: str
    port: int
    names: tuple[str, ...] = ()
    certificate: Certificate | None = None


def _check_readable(option: str, path: Path) -> None:
    try:
        path.open("rb").close()
    except OSError as error:
        raise UsageError(f"{option} {path} cannot be read: {error.strerror}") from None


def _refusal(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> str:
    """Return why a client refuses a server in a handshake in memory; empty if it does not."""
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (client.wrap_bio(received, sent, server_hostname=host), server.wrap_bio(sent, received, server_side=True))
    try:
        for _ in range(_FLIGHTS):
            for end in ends:
                with suppress(ssl.SSLWantReadError):
                    end.do_handshake()
    except ssl.SSLCertVerificationError as error:
        return error.verify_message.rstrip(".")
    return ""
