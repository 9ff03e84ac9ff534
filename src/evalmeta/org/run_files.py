"""Files of runs that are not deployed: what a run stores of its file, and how it reads the file again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

import orjson
from pydantic import TypeAdapter, ValidationError

from evalmeta.engine.subjects.replay import RecordedSubject
from evalmeta.errors import NotFound, OrgFault, SettingsError, Suggestion
from evalmeta.formats.document import Reading, reading_from
from evalmeta.formats.files import digest_of, document_once, read_document
from evalmeta.model.registry import EVALUATION_DEFINITION, MetadataType
from evalmeta.model.run import ContentKind, RunContent
from evalmeta.model.settings import SubjectSettings, SubjectTable
from evalmeta.package.files import parse_test_name
from evalmeta.report.text import count

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.json_value import JsonObject, JsonValue


_DEFAULT_READING: Final = Reading()


@dataclass(frozen=True, slots=True)
class RunFile:
    """What a run stores of its file instead of the cases; the path is relative to the project's folder if it is inside.

    The digest is that of the content when the run was created. Without settings of its own, the agent is the project's.
    """

    file: str
    digest: str
    subject_name: str
    subject: SubjectSettings | None
    reading: Reading

    def content(self) -> RunContent:
        """Return the stored JSON."""
        subject = None if self.subject is None else self.subject.model_dump(mode="json", exclude_unset=True)
        source = {
            "file": self.file,
            "digest": self.digest,
            "subjectName": self.subject_name,
            "subject": subject,
            "reading": self.reading.json(),
        }
        return RunContent(orjson.dumps(source), ContentKind.FILE)


def test_in(file: str) -> tuple[MetadataType, str]:
    """Return what the test in a file is known by: the type and full name of a definition, the path of other files.

    A definition keeps its history when it is moved or deployed, while other files in several folders may have one name.
    """
    return parse_test_name(PurePath(file).name) or (EVALUATION_DEFINITION, file)


def record_file(
    root: Path, file: str, *, subject_name: str, subject: JsonObject | None, reading: Reading = _DEFAULT_READING
) -> RunFile:
    """Return what a run stores of a file as it is now; raise NotFound, or OrgFault for invalid settings."""
    try:
        settings = read_subject(subject)
    except ValidationError as error:
        message = f"the subject's settings are not valid: {count(error.error_count(), 'error')}"
        raise OrgFault(message, code="INVALID_API_INPUT") from None
    return RunFile(file, digest_of(root / file, reading), subject_name, settings, reading)


def run_file_of(content: RunContent) -> RunFile | None:
    """Return the file that a run's content describes; None if the run is not of a file."""
    if content.kind is not ContentKind.FILE:
        return None
    source = orjson.loads(content.data)
    reading = reading_from(source["reading"])
    settings = read_subject(source["subject"])
    return RunFile(source["file"], source["digest"], source["subjectName"], settings, reading)


def read_subject(source: JsonValue) -> SubjectSettings | None:
    """Return the settings of a run's own agent, None if it has none; raise ValidationError if they are not valid."""
    if source is None:
        return None
    # evalmeta.toml cannot name this adapter.
    if source == {"adapter": "recorded"}:
        return RecordedSubject(adapter="recorded")
    return TypeAdapter[SubjectSettings](SubjectTable).validate_python(source)


def current_digest(root: Path, recorded: RunFile) -> str | None:
    """Return the hash of a file's current content; None if the file cannot be found."""
    try:
        return digest_of(root / recorded.file, recorded.reading)
    except NotFound:
        return None


def subjects_of_run(
    subjects: Mapping[str, SubjectSettings], subject_name: str, content: RunContent
) -> Mapping[str, SubjectSettings]:
    """Return the subjects that a run with this content can use: its own one, or else the project's."""
    recorded = run_file_of(content)
    return subjects if recorded is None or recorded.subject is None else {subject_name: recorded.subject}


def read_run_file(root: Path, recorded: RunFile, name: str) -> Evaluation:
    """Read the cases of a run's file again; raise SettingsError if it has changed since the run was created."""
    digest = current_digest(root, recorded)
    if digest != recorded.digest:
        what = "cannot be found" if digest is None else "has changed since the run started"
        raise SettingsError(f"{recorded.file} {what}", actions=[Suggestion("Start a new run", "test", "run", "FILE")])
    return evaluation_in(root, recorded, name)


def evaluation_in(root: Path, recorded: RunFile, name: str) -> Evaluation:
    """Return the cases of a run's file, which has not changed since it was recorded."""
    path, reading = root / recorded.file, recorded.reading
    document = document_once(
        content_key(path, recorded.digest, name, reading),
        lambda: read_document(path, label=recorded.file, name=name, reading=reading),
    )
    return replace(document.evaluation, subject_name=recorded.subject_name)


def content_key(path: Path, digest: str, name: str, reading: Reading) -> Hashable:
    """Return what identifies the content of a file with this digest, for `document_once`."""
    return path, digest, name, reading
