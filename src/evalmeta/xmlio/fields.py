"""An element taken apart by the names of its children: what the codecs read from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.xmlio.reader import NAMESPACE, local_name

if TYPE_CHECKING:
    from lxml.etree import _Element as Element


_INT: Final = re.compile(r"([+-]?)(?=[0-9])0*+([0-9]{0,10})")
_INT_RANGE: Final = range(-(2**31), 2**31)
BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_XSI: Final = "{http://www.w3.org/2001/XMLSchema-instance}"
# They only say where a schema can be found, which nothing here looks up.
_IDLE_ATTRIBUTES: Final = frozenset({f"{_XSI}schemaLocation", f"{_XSI}noNamespaceSchemaLocation"})


class Misfit(ValueError):
    """An element that does not fit the model: `code` says which rule it breaks, `element` where."""

    def __init__(self, code: str, message: str, element: Element) -> None:
        super().__init__(message)
        self.code = code
        self.element = element


class Parts:
    """The children of an element by name.

    A strict reading raises Misfit for whatever the type does not allow; a lenient one
    takes what can be read: unknown children are passed over, the first of a repeated
    field counts, a missing text is empty.
    """

    __slots__ = ("_children", "element", "strict")

    def __init__(self, element: Element, known: frozenset[str], *, strict: bool) -> None:
        self.element = element
        self.strict = strict
        children: dict[str, list[Element]] = {}
        for child in element:
            children.setdefault(str(child.tag), []).append(child)
        self._children = children
        if strict:
            self._check(known)

    def _check(self, known: frozenset[str]) -> None:
        _check_attributes(self.element)
        for tag, children in self._children.items():
            if not tag.startswith(f"{{{NAMESPACE}}}") or local_name(children[0]) not in known:
                raise Misfit("element-unknown", f"<{local_name(children[0])}> is not known here", children[0])
        texts = [self.element.text, *(child.tail for child in self.element)]
        if any(text and text.strip(" \t\r\n") for text in texts):
            message = f"text stands between the elements of <{local_name(self.element)}>"
            raise Misfit("text-stray", message, self.element)

    def many(self, name: str) -> list[Element]:
        """Gives every child of that name."""
        return self._children.get(f"{{{NAMESPACE}}}{name}", [])

    def one(self, name: str) -> Element | None:
        """Gives the child of that name, if there is one."""
        found = self.many(name)
        if self.strict and len(found) > 1:
            raise Misfit("element-repeated", f"<{name}> stands more than once", found[1])
        return found[0] if found else None

    def text(self, name: str) -> str | None:
        """Gives a child's text as it stands; None without the child."""
        child = self.one(name)
        if child is None:
            return None
        if self.strict:
            _check_attributes(child)
            if len(child):
                raise Misfit("element-unknown", f"<{name}> holds elements instead of text", child[0])
        return child.text or ""

    def required(self, name: str) -> str:
        """Gives the text of a child that must be there."""
        text = self.text(name)
        if text is None and self.strict:
            raise Misfit("element-missing", f"<{name}> is missing", self.element)
        return text or ""

    def integer(self, name: str) -> int | None:
        """Gives a child's text as a 32-bit number (xs:int)."""
        text = self._collapsed(name)
        if text is None:
            return None
        number = parse_integer(text)
        if number is None:
            self._refuse(name, f"{text!r} is no whole number")
        return number

    def boolean(self, name: str) -> bool | None:
        """Gives a child's text as true or false (xs:boolean)."""
        text = self._collapsed(name)
        if text is None:
            return None
        if text not in BOOLEANS:
            self._refuse(name, f"{text!r} is neither true nor false")
        return BOOLEANS.get(text)

    def _collapsed(self, name: str) -> str | None:
        text = self.text(name)
        return None if text is None else text.strip(" \t\r\n")

    def _refuse(self, name: str, message: str) -> None:
        if self.strict:
            raise Misfit("value-invalid", message, self.many(name)[0])


def parse_integer(text: str) -> int | None:
    """Reads a 32-bit number (xs:int); None when the text is none."""
    found = _INT.fullmatch(text.strip(" \t\r\n"))
    # Zeros in front are left out: Python reads no more than 4,300 digits.
    if found and (number := int(found[1] + (found[2] or "0"))) in _INT_RANGE:
        return number
    return None


def odd_attributes(element: Element) -> list[str]:
    """Lists an element's attributes, which metadata does not have; hints at a schema's place are no matter.

    `xsi:type` and `xsi:nil` are listed too: they would give an element another type than its own.
    """
    names = (str(name) for name in element.attrib if name not in _IDLE_ATTRIBUTES)
    return [f"xsi:{name.removeprefix(_XSI)}" if name.startswith(_XSI) else name for name in names]


def _check_attributes(element: Element) -> None:
    for name in odd_attributes(element):
        raise Misfit("attribute-unknown", f"<{local_name(element)}> has an attribute {name!r}", element)
