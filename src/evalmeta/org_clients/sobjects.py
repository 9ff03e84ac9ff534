"""The objects that can be queried, with their fields, and their descriptions.

Source: REST API Developer Guide, "sObject Describe".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from evalmeta.errors import OrgFault
from evalmeta.model.registry import metadata_type
from evalmeta.org.subjects import AGENT_PREFIX, VERSION_PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.json_value import JsonObject


FieldType: TypeAlias = Literal["id", "reference", "string", "boolean", "int", "datetime"]
_SOAP_TYPES: Final[Mapping[FieldType, str]] = {
    "id": "tns:ID",
    "reference": "tns:ID",
    "string": "xsd:string",
    "boolean": "xsd:boolean",
    "int": "xsd:int",
    "datetime": "xsd:dateTime",
}
_LENGTHS: Final[Mapping[FieldType, int]] = {"id": 18, "reference": 18, "string": 255}
_NOT_ALLOWED: Final = (
    *("activateable", "createable", "custom", "customSetting", "deletable", "deprecatedAndHidden", "feedEnabled"),
    *("hasSubtypes", "isInterface", "isSubtype", "layoutable", "mergeable", "mruEnabled", "replicateable"),
    *("searchable", "triggerable", "undeletable", "updateable"),
)


@dataclass(frozen=True, slots=True)
class Field:
    """A field; a reference has the name of the object it refers to, and of the relationship to it."""

    name: str
    type: FieldType = "string"
    target: str = ""
    relationship: str = ""


@dataclass(frozen=True, slots=True)
class SObject:
    """An object; its prefix are the first three characters of its record ids, and its first field is Id.

    `children` has, by the name of a relationship, the object with the records and its field that refers to this one.
    """

    name: str
    label: str
    prefix: str
    fields: tuple[Field, ...]
    children: tuple[tuple[str, tuple[str, str]], ...] = ()

    def field(self, name: str) -> Field:
        """Return a field by its name in any case; raise OrgFault (INVALID_FIELD)."""
        for field in self.fields:
            if field.name.casefold() == name.casefold():
                return field
        names = ", ".join(known.name for known in self.fields)
        raise OrgFault(
            f"No such column '{name}' on entity '{self.name}'.",
            code="INVALID_FIELD",
            actions=[f"{self.name} has the fields {names}."],
        )

    def parent(self, relationship: str) -> Field:
        """Return the reference of a relationship; raise OrgFault (INVALID_FIELD)."""
        for field in self.fields:
            if field.relationship and field.relationship.casefold() == relationship.casefold():
                return field
        raise OrgFault(f"Didn't understand relationship '{relationship}' in field path.", code="INVALID_FIELD")

    def child(self, relationship: str) -> tuple[str, str, str]:
        """Return the name of a relationship, the children's object and their field; raise OrgFault (INVALID_TYPE)."""
        for name, (child, field) in self.children:
            if name.casefold() == relationship.casefold():
                return name, child, field
        names = " and ".join(name for name, _ in self.children)
        raise OrgFault(
            f"Didn't understand relationship '{relationship}' in FROM part of query call.",
            code="INVALID_TYPE",
            actions=[f"{self.name} has the relationships {names}." if names else f"{self.name} has no relationships."],
        )


_DATES: Final = (
    Field("CreatedDate", "datetime"),
    Field("CreatedById", "reference", "User", "CreatedBy"),
    Field("LastModifiedDate", "datetime"),
    Field("LastModifiedById", "reference", "User", "LastModifiedBy"),
    Field("SystemModstamp", "datetime"),
)
_CHANGES: Final = (*_DATES, Field("IsDeleted", "boolean"))
ORGANIZATION: Final = SObject(
    "Organization",
    "Organization",
    "00D",
    (
        Field("Id", "id"),
        Field("Name"),
        Field("InstanceName"),
        Field("IsSandbox", "boolean"),
        Field("TrialExpirationDate", "datetime"),
        Field("NamespacePrefix"),
        Field("OrganizationType"),
        Field("Country"),
        Field("LanguageLocaleKey"),
        Field("DefaultLocaleSidKey"),
        Field("TimeZoneSidKey"),
        *_DATES,
    ),
)
USER: Final = SObject(
    "User",
    "User",
    "005",
    (Field("Id", "id"), Field("Username"), Field("Name"), Field("Email"), Field("IsActive", "boolean")),
)
AGENT: Final = SObject(
    "BotDefinition",
    "Bot",
    AGENT_PREFIX,
    (
        Field("Id", "id"),
        Field("DeveloperName"),
        Field("MasterLabel"),
        *_CHANGES,
        Field("BotUserId", "reference", "User", "BotUser"),
        Field("Description"),
        Field("Type"),
        Field("AgentType"),
        Field("AgentTemplate"),
    ),
    (("BotVersions", ("BotVersion", "BotDefinitionId")),),
)
AGENT_VERSION: Final = SObject(
    "BotVersion",
    "Bot Version",
    VERSION_PREFIX,
    (
        Field("Id", "id"),
        Field("BotDefinitionId", "reference", "BotDefinition", "BotDefinition"),
        Field("DeveloperName"),
        Field("VersionNumber", "int"),
        Field("Status"),
        *_CHANGES,
        Field("CopilotPrimaryLanguage"),
        Field("ToneType"),
        Field("CopilotSecondaryLanguages"),
    ),
)
SOBJECTS: Final = {kind.name.casefold(): kind for kind in (AGENT, AGENT_VERSION, ORGANIZATION, USER)}


def sobject(name: str) -> SObject:
    """Return an object by its name in any case; raise OrgFault (INVALID_TYPE)."""
    kind = SOBJECTS.get(name.casefold())
    if kind is None:
        action = f"This org has {', '.join(known.name for known in SOBJECTS.values())}."
        if component := metadata_type(name):
            # Salesforce does not answer such queries either.
            action = f"Components are not records. List them: sf org list metadata --metadata-type {component.name}"
        raise OrgFault(f"sObject type '{name}' is not supported.", code="INVALID_TYPE", actions=[action])
    return kind


def write_summary(kind: SObject, *, root: str) -> JsonObject:
    """Return an object's entry in the list of all objects; `root` is the address of the list."""
    url = f"{root}/{kind.name}"
    return {
        **dict.fromkeys(_NOT_ALLOWED, False),
        "name": kind.name,
        "label": kind.label,
        "labelPlural": f"{kind.label}s",
        "keyPrefix": kind.prefix,
        "queryable": True,
        "retrieveable": True,
        "urls": {"sobject": url, "describe": f"{url}/describe", "rowTemplate": f"{url}/{{ID}}"},
    }


def write_description(kind: SObject, *, root: str) -> JsonObject:
    """Return the description of an object with its fields."""
    return {
        **write_summary(kind, root=root),
        "fields": [_description(field) for field in kind.fields],
        "childRelationships": [
            {"relationshipName": name, "childSObject": child, "field": field, "cascadeDelete": True}
            for name, (child, field) in kind.children
        ],
        "recordTypeInfos": [],
        "supportedScopes": [],
        "actionOverrides": [],
        "namedLayoutInfos": [],
    }


def _description(field: Field) -> JsonObject:
    return {
        **dict.fromkeys(("calculated", "createable", "custom", "unique", "updateable", "autoNumber"), False),
        "name": field.name,
        "label": field.name,
        "type": field.type,
        "soapType": _SOAP_TYPES[field.type],
        "length": _LENGTHS.get(field.type, 0),
        "nillable": field.type not in {"id", "boolean"},
        "filterable": True,
        "sortable": True,
        "groupable": False,
        "aggregatable": True,
        "nameField": field.name in {"Name", "MasterLabel"},
        "referenceTo": [field.target] if field.target else [],
        "relationshipName": field.relationship or None,
        "picklistValues": [],
        "defaultValue": None,
        "inlineHelpText": None,
    }
