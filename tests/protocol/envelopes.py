"""SOAP calls as other programs write them: jsforce's way, and what toolkits make of the WSDL."""

from __future__ import annotations

__all__ = ["jsforce_call", "wsdl_call"]

_METADATA = "http://soap.sforce.com/2006/04/metadata"
_SOAP = "http://schemas.xmlsoap.org/soap/envelope/"


def jsforce_call(operation: str, *, session: str = "S") -> bytes:
    """Return a call whose default namespace is declared on Header and Body."""
    header = (
        f"<SessionHeader><sessionId>{session}</sessionId></SessionHeader><CallOptions><client>x</client></CallOptions>"
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="{_SOAP}" xmlns:xsd="urn:x">'
        f'<soapenv:Header xmlns="{_METADATA}">{header}</soapenv:Header>'
        f'<soapenv:Body xmlns="{_METADATA}">{operation}</soapenv:Body></soapenv:Envelope>'
    ).encode()


def wsdl_call(operation: str, *, session: str = "S") -> bytes:
    """Return a call in which every element has a prefix, with spaces between them and no XML declaration."""
    header = f"<met:SessionHeader>\n  <met:sessionId>{session}</met:sessionId>\n</met:SessionHeader>"
    return (
        f'<env:Envelope\n  xmlns:env="{_SOAP}" xmlns:met="{_METADATA}">\n<env:Header>\n{header}\n</env:Header>\n'
        f"<env:Body>\n{operation}\n</env:Body>\n</env:Envelope>\n"
    ).encode()
