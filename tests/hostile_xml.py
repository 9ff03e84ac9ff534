"""Documents that try to read a file, open a connection or use up the machine, and the bait they point to."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pytest

from evalmeta.xmlio.reader import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["DOCTYPES", "HINTS", "HOSTILE", "SECRET", "Bait", "Hostile", "baited", "hostile", "laid"]

SECRET = "the canary's own words"  # noqa: S105 - a text to look for
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "ha"}">' for n in range(10))
QUADRATIC = f'<!ENTITY q "{"q" * 100_000}">'

DOCTYPES = {
    "empty": "<!DOCTYPE a>",
    "spread": "<!DOCTYPE\n\ta\n[\n]\n>",
    "internal": '<!DOCTYPE a [<!ENTITY e "inner">]>',
    "external file": '<!DOCTYPE a [<!ENTITY e SYSTEM "{file}">]>',
    "external pipe": '<!DOCTYPE a [<!ENTITY e SYSTEM "{pipe}">]>',
    "external port": '<!DOCTYPE a [<!ENTITY e SYSTEM "{port}">]>',
    "public": '<!DOCTYPE a [<!ENTITY e PUBLIC "-//x" "{port}">]>',
    "unparsed": '<!DOCTYPE a [<!NOTATION n SYSTEM "{pipe}"><!ENTITY e SYSTEM "{file}" NDATA n>]>',
    "subset file": '<!DOCTYPE a SYSTEM "{file}">',
    "subset pipe": '<!DOCTYPE a SYSTEM "{pipe}">',
    "subset port": '<!DOCTYPE a PUBLIC "-//x" "{port}">',
    "parameter file": '<!DOCTYPE a [<!ENTITY % p SYSTEM "{file}">%p;]>',
    "parameter pipe": '<!DOCTYPE a [<!ENTITY % p SYSTEM "{pipe}">%p;]>',
    "parameter port": '<!DOCTYPE a [<!ENTITY % p SYSTEM "{port}">%p;]>',
    "parameter in parameter": "<!DOCTYPE a [<!ENTITY % p \"<!ENTITY e SYSTEM '{file}'>\">%p;]>",
    "default attribute": '<!DOCTYPE a [<!ATTLIST a x CDATA "&e;"><!ENTITY e SYSTEM "{file}">]>',
    "billion laughs": f"<!DOCTYPE a [{LAUGHS}]>",
    "quadratic": f"<!DOCTYPE a [{QUADRATIC}]>",
    "itself": '<!DOCTYPE a [<!ENTITY e "&e;">]>',
    "damaged": '<!DOCTYPE a [<!ENTITY e SYSTEM "{file}"',
    "after a comment": '<!-- <a> --><?x y?>\n<!DOCTYPE a [<!ENTITY e SYSTEM "{file}">]>',
    "after a comment that hides one": "<!-- <!DOCTYPE b> -->\n<!DOCTYPE a>",
}
HINTS = {
    "schema location": '<a xmlns:xsi="{xsi}" xsi:schemaLocation="{ns} {pipe} urn:x {port}"/>',
    "schema without namespace": '<a xmlns:xsi="{xsi}" xsi:noNamespaceSchemaLocation="{pipe}"/>',
    "stylesheet": '<?xml-stylesheet href="{pipe}"?><a/>',
    "model": '<?xml-model href="{port}"?><a/>',
    "include": '<a xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="{pipe}" parse="text"/></a>',
    "base": '<a xml:base="{port}"/>',
}


class Hostile(NamedTuple):
    """What makes a good document a hostile one: text before it, text inside it, another encoding."""

    before: str = ""
    inside: str = "&e;"
    encoding: str = "utf-8"


_XXE = DOCTYPES["external file"]
HOSTILE = {
    **{f"doctype, {name}": Hostile(doctype) for name, doctype in DOCTYPES.items()},
    "doctype, laughs in the text": Hostile(DOCTYPES["billion laughs"], "&l9;"),
    "doctype, quadratic in the text": Hostile(DOCTYPES["quadratic"], "&q;" * 1_000),
    "doctype in UTF-16": Hostile(_XXE, encoding="utf-16"),
    "doctype in UTF-7": Hostile(f'<?xml version="1.0" encoding="UTF-7"?>{_XXE}', encoding="utf-7"),
    "doctype in EBCDIC": Hostile(f'<?xml version="1.0" encoding="IBM037"?>{_XXE}', encoding="cp037"),
    "entity that nobody declared": Hostile(),
    "character that is none": Hostile(inside="&#0;"),
    "byte that is no character": Hostile(inside="\0"),
    "not closed": Hostile(inside="<a>"),
    "too deep": Hostile(inside="<a>" * 100_000 + "</a>" * 100_000),
    "too large": Hostile(inside=" " * 9_000_000),
}


@dataclass(frozen=True)
class Bait:
    """What hostile documents point to: a file with a text to look for, a pipe that would hang, an open port."""

    file: str
    pipe: str
    port: str


@contextmanager
def laid(folder: Path) -> Iterator[Bait]:
    """Lays bait in a folder, and checks afterwards that nobody came to the port."""
    canary, pipe = folder / "canary.txt", folder / "pipe"
    canary.write_text(SECRET)
    os.mkfifo(pipe)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield Bait(canary.as_uri(), pipe.as_uri(), f"http://127.0.0.1:{server.getsockname()[1]}/x")
        with pytest.raises(BlockingIOError):
            server.accept()


def baited(template: str, bait: Bait) -> str:
    """Puts the bait's addresses into a document."""
    for name in ("file", "pipe", "port"):
        template = template.replace(f"{{{name}}}", getattr(bait, name))
    return template.replace("{ns}", NAMESPACE).replace("{xsi}", "http://www.w3.org/2001/XMLSchema-instance")


def hostile(kind: Hostile, good: str, bait: Bait) -> bytes:
    """Makes a good document hostile; it has no XML declaration, and `{here}` where text may stand."""
    return (baited(kind.before, bait) + good.replace("{here}", kind.inside)).encode(kind.encoding)
