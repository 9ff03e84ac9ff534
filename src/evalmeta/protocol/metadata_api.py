"""The values that the Metadata API sends and returns.

Names are the API's own in snake case (Metadata API Developer Guide, "File-Based Calls" and
"Utility Calls"). Times are ISO 8601 in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

TEST_LEVELS: Final = ("NoTestRun", "RunSpecifiedTests", "RunLocalTests", "RunAllTestsInOrg", "RunRelevantTests")


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """The options of a deployment; the defaults are those of Salesforce's clients."""

    allow_missing_files: bool = False
    auto_update_package: bool = False
    check_only: bool = False
    ignore_warnings: bool = False
    perform_retrieve: bool = False
    purge_on_delete: bool = False
    rollback_on_error: bool = True
    run_all_tests: bool = False
    run_tests: tuple[str, ...] = ()
    single_package: bool = True
    test_level: str | None = None


@dataclass(frozen=True, slots=True)
class AsyncResult:
    """The id and state of a job: Queued, InProgress, Completed or Error."""

    done: bool
    id: str
    state: str = "Queued"
    message: str | None = None
    status_code: str | None = None


@dataclass(frozen=True, slots=True)
class MetadataError:
    """Why a component was not created, changed or deleted."""

    message: str
    status_code: str
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SaveResult:
    """The result of one component of createMetadata, updateMetadata or renameMetadata."""

    full_name: str
    success: bool
    errors: tuple[MetadataError, ...] = ()


@dataclass(frozen=True, slots=True)
class UpsertResult:
    """The result of one component of upsertMetadata."""

    full_name: str
    created: bool
    success: bool
    errors: tuple[MetadataError, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """The result of one component of deleteMetadata."""

    full_name: str
    success: bool
    errors: tuple[MetadataError, ...] = ()


@dataclass(frozen=True, slots=True)
class CancelResult:
    """Whether a deployment was canceled immediately, because it was still waiting."""

    done: bool
    id: str


@dataclass(frozen=True, slots=True)
class DeployMessage:
    """The result of one component; `problem` is the reason of a failure."""

    component_type: str
    full_name: str
    file_name: str
    success: bool
    changed: bool = False
    created: bool = False
    deleted: bool = False
    created_date: str = ""
    id: str | None = None
    line_number: int | None = None
    column_number: int | None = None
    problem: str | None = None
    problem_type: str | None = None

    @property
    def key(self) -> str:
        """Return `Type:FullName`, unique in an org."""
        return f"{self.component_type}:{self.full_name}"


@dataclass(frozen=True, slots=True)
class RunTestsResult:
    """The Apex tests of a deployment; orgs of evalmeta run none."""

    num_failures: int = 0
    num_tests_run: int = 0
    total_time: float = 0.0


@dataclass(frozen=True, slots=True)
class DeployDetails:
    """The results of all components."""

    component_failures: tuple[DeployMessage, ...] = ()
    component_successes: tuple[DeployMessage, ...] = ()
    run_test_result: RunTestsResult = field(default_factory=RunTestsResult)


@dataclass(frozen=True, slots=True)
class DeployResult:
    """The status or the result of a deployment."""

    id: str
    status: str
    done: bool
    success: bool
    check_only: bool = False
    rollback_on_error: bool = True
    ignore_warnings: bool = False
    run_tests_enabled: bool = False
    canceled_by: str | None = None
    canceled_by_name: str | None = None
    created_by: str = ""
    created_by_name: str = ""
    created_date: str = ""
    start_date: str | None = None
    completed_date: str | None = None
    last_modified_date: str = ""
    number_components_total: int = 0
    number_components_deployed: int = 0
    number_component_errors: int = 0
    number_tests_total: int = 0
    number_tests_completed: int = 0
    number_test_errors: int = 0
    error_message: str | None = None
    error_status_code: str | None = None
    state_detail: str | None = None
    details: DeployDetails = field(default_factory=DeployDetails)


@dataclass(frozen=True, slots=True)
class FileProperties:
    """A component as an org lists it."""

    type: str
    full_name: str
    file_name: str
    id: str = ""
    created_by_id: str = ""
    created_by_name: str = ""
    created_date: str = ""
    last_modified_by_id: str = ""
    last_modified_by_name: str = ""
    last_modified_date: str = ""
    manageable_state: str = "unmanaged"
    namespace_prefix: str = ""


@dataclass(frozen=True, slots=True)
class RetrieveMessage:
    """Something that could not be retrieved."""

    file_name: str
    problem: str


@dataclass(frozen=True, slots=True)
class RetrieveResult:
    """The status of a retrieve; when it is done, also the zip and the list of its files."""

    id: str
    status: str
    done: bool
    success: bool
    error_message: str | None = None
    error_status_code: str | None = None
    file_properties: tuple[FileProperties, ...] = ()
    messages: tuple[RetrieveMessage, ...] = ()
    zip_file: bytes = b""


@dataclass(frozen=True, slots=True)
class MetadataObject:
    """A metadata type as an org describes it."""

    directory_name: str
    xml_name: str
    suffix: str | None = None  # None for bundles
    in_folder: bool = False
    meta_file: bool = False


@dataclass(frozen=True, slots=True)
class DescribeResult:
    """The metadata types of an org."""

    metadata_objects: tuple[MetadataObject, ...]
    organization_namespace: str = ""
    partial_save_allowed: bool = True
    test_required: bool = False
