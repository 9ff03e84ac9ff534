"""The Metadata API's SOAP messages: envelopes, operations and faults, and dataclasses as XML or JSON.

In replies only Envelope and Body have a prefix, which jsforce requires. A zip is base64 text, which is
cut out of a message before the XML is parsed, so that no parser reads text of that size.

The fields of a dataclass are elements (`check_only: bool` is `<checkOnly>true</checkOnly>`), sorted by name as in
the sequences of the Metadata API's WSDL.
"""

from __future__ import annotations

import base64
import binascii
import re
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, cast, get_args, get_origin, get_type_hints

from evalmeta import limits
from evalmeta.errors import InvalidMetadata, MessageUnreadable, OrgFault
from evalmeta.model.registry import Manifest, ManifestTypes
from evalmeta.protocol.metadata_api import DeployOptions, RetrieveResult
from evalmeta.xmlio.nodes import children, find, read_node, text_of
from evalmeta.xmlio.reader import NAMESPACE
from evalmeta.xmlio.writer import Node, node, optional, render, render_piece

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from _typeshed import DataclassInstance

    from evalmeta.model.json_value import JsonObject, JsonValue


_T = TypeVar("_T")
_V = TypeVar("_V")
_SOAP: Final = "http://schemas.xmlsoap.org/soap/envelope/"
_XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"
# Some XML writers escape line ends in base64 as `&#13;`, or use a CDATA section.
_LINE_END: Final = rb"&#(?:10|13|x[aAdD]);"
_ZIP: Final = re.compile(
    rb"<(?:\w+:)?[zZ]ipFile(?:\s[^<>]*)?>"
    rb"(?P<framed>\s*+(?P<cdata><!\[CDATA\[)?"
    rb"(?P<base64>[A-Za-z0-9+/=\s]*+(?:" + _LINE_END + rb"[A-Za-z0-9+/=\s]*+)*+)"
    rb"(?(cdata)\]\]>\s*))</(?:\w+:)?[zZ]ipFile>"
)
_EXPECTED: Final = {bool: "true or false", int: "a number", float: "a number", bytes: "base64"}
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Call:
    """A call: the operation's element, the session's token, a zip if there is one, and the AllOrNoneHeader."""

    operation: Node
    session: str = field(default="", repr=False)
    zip_file: bytes | None = None
    all_or_none: bool = False

    @property
    def name(self) -> str:
        """Return the operation's name, such as `checkDeployStatus`."""
        return self.operation.name

    def text(self, *names: str) -> str:
        """Return the text at a path of names inside the operation, or an empty text."""
        return text_of(find(self.operation, *names))


def call_of(operation: str, **fields: str) -> Node:
    """Return a call whose fields are texts."""
    return node(operation, [node(name, value) for name, value in fields.items()])


def list_call(type_name: str, version: str) -> Node:
    """Return a listMetadata call for one type."""
    return node("listMetadata", [node("queries", [node("type", type_name)]), node("asOfVersion", version)])


def deploy_call(zip_file: bytes, options: DeployOptions) -> Node:
    """Return a deploy call."""
    encoded = base64.b64encode(zip_file).decode("ascii")
    return node("deploy", [node("ZipFile", encoded), node("DeployOptions", to_nodes(options))])


def retrieve_call(manifest: Manifest, version: str, *, single_package: bool = False) -> Node:
    """Return a retrieve call for a manifest; a single package has no folder around its files."""
    types = [
        node("types", [*(node("members", member) for member in kind.members), node("name", kind.name)])
        for kind in manifest.types
    ]
    unpackaged = node("unpackaged", [*types, *optional("version", manifest.version)])
    single = [node("singlePackage", "true")] if single_package else []
    return node("retrieve", [node("retrieveRequest", [node("apiVersion", version), *single, unpackaged])])


def write_call(operation: Node, *, session: str, client: str) -> bytes:
    """Return a call in an envelope with the session's token."""
    header = [node("SessionHeader", [node("sessionId", session)]), node("CallOptions", [node("client", client)])]
    envelope = [node("soapenv:Header", header, xmlns=NAMESPACE), node("soapenv:Body", [operation], xmlns=NAMESPACE)]
    return render(node("soapenv:Envelope", envelope, **{"xmlns:soapenv": _SOAP}))


def read_call(data: bytes) -> Call:
    """Read a call from an envelope; raise MessageUnreadable if the bytes are not a SOAP call."""
    body, zip_file, header = _read_body(
        data, max_bytes=limits.MAX_ENVELOPE_BYTES, max_elements=limits.MAX_ENVELOPE_ELEMENTS
    )
    operation = next(children(body), None)
    if operation is None:
        raise MessageUnreadable("the SOAP body is empty")
    all_or_none = text_of(find(header, "AllOrNoneHeader", "allOrNone"))
    return Call(
        operation,
        text_of(find(header, "SessionHeader", "sessionId")),
        zip_file,
        read_boolean("allOrNone", all_or_none, otherwise=False),
    )


def read_deploy(call: Call) -> tuple[bytes, DeployOptions]:
    """Return the zip and the options of a deploy call; jsforce sends `DeployOptions`, others `deployOptions`."""
    if call.zip_file is None:
        raise MessageUnreadable("deploy has no ZipFile")
    options = find(call.operation, "DeployOptions") or find(call.operation, "deployOptions") or node("DeployOptions")
    return call.zip_file, from_node(DeployOptions, options)


def read_job_id(call: Call) -> str:
    """Return the job id of a call, in the spelling of jsforce or of the WSDL; empty if there is none."""
    spellings = ("asyncProcessId", "id", "String", "validationId", "validationID")
    return next((job_id for name in spellings if (job_id := call.text(name).strip())), "")


def read_retrieve(call: Call) -> tuple[Manifest, bool]:
    """Return the manifest of a retrieve call (`request` in jsforce), and whether to return a single package."""
    request = find(call.operation, "retrieveRequest") or find(call.operation, "request")
    unpackaged = find(request, "unpackaged") if request else None
    if request and (package := text_of(find(request, "packageNames"))):
        # As an org answers that has no package.
        raise OrgFault(f"No package named '{package[:80]}' found", code="INVALID_CROSS_REFERENCE_KEY")
    if request is None or unpackaged is None:
        raise MessageUnreadable("retrieve has no manifest")
    types = tuple(_manifest_types(child) for child in children(unpackaged) if child.name == "types")
    version = text_of(find(unpackaged, "version")) or text_of(find(request, "apiVersion"))
    single = read_boolean("singlePackage", text_of(find(request, "singlePackage")), otherwise=False)
    return Manifest(types, version or None), single


def write_results(operation: str, results: Sequence[DataclassInstance]) -> bytes:
    """Return the reply with the results of a call, which may be none."""
    return _write_response(operation, [node("result", to_nodes(result)) for result in results])


def stream_results(operation: str, results: Iterable[DataclassInstance]) -> Iterator[bytes]:
    """Yield the reply that `write_results` returns, in pieces of about 64 kB."""
    start, end = _write_response(operation, [node("result")]).split(b"<result/>")
    pieces, size = [start], 0
    for result in results:
        piece = render_piece(node("result", to_nodes(result)))
        pieces.append(piece)
        size += len(piece)
        if size >= limits.PIECE_BYTES:
            yield b"".join(pieces)
            pieces, size = [], 0
    yield b"".join((*pieces, end))


def write_text_result(operation: str, text: str) -> bytes:
    """Return the reply with a text as result, such as the id of a quick deploy."""
    return _write_response(operation, [node("result", text)])


def write_records(type_name: str, records: Sequence[tuple[str, Node] | None]) -> bytes:
    """Return the reply to readMetadata: the full name and element of each record; None if it does not exist."""
    return _write_response("readMetadata", [node("result", [_record(type_name, record) for record in records])])


def read_results(cls: type[_T], data: bytes) -> list[_T]:
    """Read the results of a call; raise OrgFault for a fault, MessageUnreadable if it is not a SOAP reply."""
    response, zip_file = _read_response(data)
    results = [from_node(cls, child) for child in children(response) if child.name == "result"]
    if zip_file is None:
        return results
    return [replace(result, zip_file=zip_file) if isinstance(result, RetrieveResult) else result for result in results]


def read_text_result(data: bytes) -> str:
    """Read a result that is a text; raise like `read_results`."""
    response, _ = _read_response(data)
    text = text_of(find(response, "result"))
    if not text:
        raise MessageUnreadable(f"<{response.name}> has no <result>")
    return text


def write_fault(code: str, message: str) -> bytes:
    """Return the reply with a fault; lines after the first one of the message are advice."""
    fault = node("soapenv:Fault", [node("faultcode", f"sf:{code}"), node("faultstring", f"{code}: {message}")])
    envelope = {"xmlns:soapenv": _SOAP, "xmlns:sf": NAMESPACE}
    return render(node("soapenv:Envelope", [node("soapenv:Body", [fault])], **envelope))


def _write_response(operation: str, results: Sequence[Node]) -> bytes:
    envelope = {"xmlns:soapenv": _SOAP, "xmlns": NAMESPACE, "xmlns:xsi": _XSI}
    return render(node("soapenv:Envelope", [node("soapenv:Body", [node(f"{operation}Response", results)])], **envelope))


def _record(type_name: str, record: tuple[str, Node] | None) -> Node:
    if record is None:
        return node("records", **{"xsi:nil": "true"})
    full_name, content = record
    return node("records", [node("fullName", full_name), *children(content)], **{"xsi:type": type_name})


def _read_response(data: bytes) -> tuple[Node, bytes | None]:
    body, zip_file, _ = _read_body(
        data, max_bytes=limits.MAX_REPLY_ENVELOPE_BYTES, max_elements=limits.MAX_REPLY_ELEMENTS
    )
    response = next(children(body), None)
    if response is None:
        raise MessageUnreadable("the SOAP reply is empty")
    if response.name == "Fault":
        code = text_of(find(response, "faultcode")).rpartition(":")[2] or "UNKNOWN_EXCEPTION"
        text, _, action = text_of(find(response, "faultstring")).removeprefix(f"{code}: ").partition("\n")
        raise OrgFault(f"{code}: {text}", code=code, actions=[action] if action else [])
    return response, zip_file


def _read_body(data: bytes, *, max_bytes: int, max_elements: int) -> tuple[Node, bytes | None, Node]:
    """Return the body, a zip if there is one, and the header of a message."""
    match = _ZIP.search(data)
    zip_file = None
    if match:
        zip_file = _decode_zip(match["base64"])
        data = data[: match.start("framed")] + data[match.end("framed") :]
    try:
        envelope = read_node(data, label="the SOAP message", max_bytes=max_bytes, max_elements=max_elements)
    except InvalidMetadata as error:
        raise MessageUnreadable(str(error)) from None
    body = find(envelope, "Body")
    if envelope.name != "Envelope" or body is None:
        raise MessageUnreadable("the message is not a SOAP envelope")
    return body, zip_file, find(envelope, "Header") or node("Header")


def _decode_zip(text: bytes) -> bytes:
    try:
        return base64.b64decode(re.sub(_LINE_END, b"", text) if b"&" in text else text)
    except binascii.Error:
        raise MessageUnreadable("the zip is not valid base64") from None


def _manifest_types(types: Node) -> ManifestTypes:
    members = tuple(text_of(child).strip() for child in children(types) if child.name == "members")
    return ManifestTypes(text_of(find(types, "name")).strip(), members)


class _Field(NamedTuple):
    """How to write a field: its element, its type, and whether it is a dataclass, is repeated, and is required."""

    attribute: str
    element: str
    type: type
    nested: bool
    repeats: bool
    required: bool


def to_nodes(value: DataclassInstance) -> list[Node]:
    """Return a dataclass as elements, one for each field that is not None."""
    nodes: list[Node] = []
    for spec in _fields(type(value)):
        content = getattr(value, spec.attribute)
        if spec.repeats:
            nodes += [_to_node(spec.element, item) for item in content]
        elif content is not None:
            nodes.append(_to_node(spec.element, content))
    return nodes


def from_node(cls: type[_T], source: Node) -> _T:
    """Read a dataclass from an element, ignoring unknown ones; raise MessageUnreadable for a missing or wrong field."""
    by_name: dict[str, list[Node]] = {}
    for child in children(source):
        by_name.setdefault(child.name, []).append(child)
    return _made(cls, by_name, _from_node, f"<{source.name}> has no <{{}}>")


def _made(cls: type[_T], by_name: Mapping[str, list[_V]], read: Callable[[_Field, _V], object], missing: str) -> _T:
    """Make a dataclass of what `read` returns for values by the names of elements."""
    values: dict[str, object] = {}
    for spec in _fields(cast("type", cls)):
        items = by_name.get(spec.element)
        if spec.repeats:
            values[spec.attribute] = tuple(read(spec, item) for item in items or ())
        elif items:
            values[spec.attribute] = read(spec, items[0])
        elif spec.required:
            raise MessageUnreadable(missing.format(spec.element))
    return cls(**values)


def to_json(value: DataclassInstance) -> JsonObject:
    """Return a dataclass as a JSON object, with a key for each field that is not None."""
    pairs = ((spec, getattr(value, spec.attribute)) for spec in _fields(type(value)))
    return {spec.element: _to_json(item) for spec, item in pairs if item is not None}


def from_json(cls: type[_T], source: JsonObject) -> _T:
    """Read a dataclass from a JSON object; raise like `from_node`."""
    lists = ((name, value if isinstance(value, list) else [value]) for name, value in source.items())
    by_name = {name: values for name, values in lists if values != [None]}
    return _made(cls, by_name, _from_json, "the JSON object has no '{}'")


def read_boolean(name: str, text: str, *, otherwise: bool) -> bool:
    """Read an xsd:boolean in any case, as Python writes it, `otherwise` if it is empty; raise MessageUnreadable."""
    try:
        return _BOOLEANS[text.strip().lower()] if text.strip() else otherwise
    except KeyError:
        raise _wrong(name, text, bool) from None


def _to_node(name: str, value: object) -> Node:
    if isinstance(value, str):
        return node(name, value)
    if isinstance(value, bool):
        return node(name, str(value).lower())
    if isinstance(value, bytes):
        return node(name, base64.b64encode(value).decode("ascii"))
    if is_dataclass(value) and not isinstance(value, type):
        return node(name, to_nodes(value))
    return node(name, str(value))


def _from_node(spec: _Field, source: Node) -> object:
    if spec.nested:
        return from_node(spec.type, source)
    text = source.content if isinstance(source.content, str) else ""
    if spec.type is str:
        return text
    try:
        return _from_text(spec.type, text)
    except (ValueError, KeyError, binascii.Error):
        raise _wrong(spec.element, text, spec.type) from None


def _wrong(name: str, text: str, kind: type) -> MessageUnreadable:
    return MessageUnreadable(f"<{name}> is {text[:80]!r}, not {_EXPECTED.get(kind, kind.__name__)}")


def _to_json(value: object) -> JsonValue:
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if is_dataclass(value) and not isinstance(value, type):
        return to_json(value)
    return cast("JsonValue", value)


def _from_json(spec: _Field, value: JsonValue) -> object:
    if is_dataclass(spec.type) and isinstance(value, dict):
        return from_json(spec.type, value)
    if type(value) is spec.type:
        return value
    if isinstance(value, str) and spec.type in {bool, int, bytes}:
        with suppress(ValueError, KeyError):
            return _from_text(spec.type, value)
    raise MessageUnreadable(f"{spec.element!r} is {str(value)[:80]!r}")


def _from_text(kind: type, text: str) -> object:
    if kind is bool:
        return _BOOLEANS[text.strip().lower()]
    if kind in {int, float}:
        return kind(text)
    if kind is bytes:
        return base64.b64decode(text)
    return text


@cache
def _fields(cls: type) -> tuple[_Field, ...]:
    hints = get_type_hints(cls)
    specs = []
    for member in fields(cls):
        required = member.default is MISSING and member.default_factory is MISSING
        specs.append(_field_of(member.name, hints[member.name], required=required))
    return tuple(sorted(specs, key=lambda member: member.element))


def _field_of(attribute: str, hint: object, *, required: bool) -> _Field:
    first, *rest = attribute.split("_")
    element = first + "".join(word.capitalize() for word in rest)
    arguments = [arg for arg in get_args(hint) if arg not in {type(None), ...}]
    kind = arguments[0] if arguments else hint
    if not isinstance(kind, type):
        raise TypeError(f"the type of {attribute} is not supported: {hint!r}")
    return _Field(attribute, element, kind, is_dataclass(kind), get_origin(hint) is tuple, required)
