"""Custom scorers by their names: those of a project's files, or those that are deployed in an org."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.errors import EvalmetaError, nearest_word
from evalmeta.model.agent_scorer import FindScorer, PromptScorer, unknown_fields
from evalmeta.model.registry import META_XML_SUFFIX, SCORER_DEFINITION, Component
from evalmeta.org.run_files import run_file_of
from evalmeta.package.files import read_file
from evalmeta.package.folders import files_below, list_files
from evalmeta.package.project import Project, find_project
from evalmeta.xmlio.agent_scorers import check_agent_scorer, read_agent_scorer, read_template_text
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from evalmeta.model.run import RunContent
    from evalmeta.org.organization import Organization


_TEMPLATE_FOLDER: Final = "genAiPromptTemplates"
_TEMPLATE_SUFFIX: Final = ".genAiPromptTemplate"


class _Source(NamedTuple):
    """Where scorers are: the names of all, their contents, and what to do about a missing one."""

    where: str
    names: Callable[[], Sequence[str]]
    content: Callable[[str], bytes | None]
    way_out: str


def scorers_of_project(root: Path) -> FindScorer:
    """Return what finds the custom scorers in the files of the project around a folder."""
    project = cache(lambda: _project(root))

    @cache
    def files() -> dict[str, Component]:
        components = list_files(own) if (own := project()) else ()
        return {file.full_name.casefold(): file for file in components if file.type == SCORER_DEFINITION}

    def names() -> list[str]:
        return [file.full_name for file in files().values()]

    def content(name: str) -> bytes | None:
        file = files().get(name.casefold())
        return read_file(file.path) if file else None

    file = f"{SCORER_DEFINITION.directory}/NAME.{SCORER_DEFINITION.suffix}{META_XML_SUFFIX}"
    way_out = f"add {file}, for example with `evalmeta retrieve --metadata {SCORER_DEFINITION.name}:NAME`"
    return _finder(_Source("the project", names, content, way_out), project)


def scorers_of_org(org: Organization) -> FindScorer:
    """Return what finds the deployed custom scorers; their prompt templates are files of the org's project."""

    def names() -> list[str]:
        return [component.full_name for component in org.components.list(SCORER_DEFINITION.name)]

    def content(name: str) -> bytes | None:
        return org.components.content(SCORER_DEFINITION.name, name)

    way_out = f"deploy it with `evalmeta deploy --metadata {SCORER_DEFINITION.name}:NAME`"
    return _finder(_Source("the org", names, content, way_out), cache(lambda: _project(org.root)))


def scorers_of_run(org: Organization, content: RunContent) -> FindScorer:
    """Return what finds the custom scorers of a run: those of the project if it runs a file, or deployed ones."""
    return scorers_of_org(org) if run_file_of(content) is None else scorers_of_project(org.root)


def _finder(source: _Source, project: Callable[[], Project | None]) -> FindScorer:
    @cache
    def find(name: str) -> PromptScorer | str:
        try:
            return _find(name, source, project)
        except EvalmetaError as error:
            return f"the custom scorer {name!r} cannot be used: {error}"

    return find


def _find(name: str, source: _Source, project: Callable[[], Project | None]) -> PromptScorer | str:
    content = source.content(name)
    if content is None:
        near = nearest_word(name, source.names())
        hint = f"did you mean {near!r}? If not, " if near else ""
        return f"{source.where} has no custom scorer {name!r}; {hint}{source.way_out.replace('NAME', name)}"
    document = read_xml(content, label=f"{name}.{SCORER_DEFINITION.suffix}")
    check_agent_scorer(document)
    scorer = read_agent_scorer(document)
    version = scorer.version_in_use
    if version is None:
        return f"no version of the custom scorer {name!r} is Available: {scorer.version_list}"
    if version.engine != "PromptTemplate":
        by = {"Manual": "people judge by it", "Expression": "only orgs compute its expression"}
        reason = by.get(version.engine, f"its engine is {version.engine}")
        return f"the custom scorer {name!r} cannot be run locally: {reason} (engineType {version.engine})"
    template = version.engine_ref.strip()
    own = project()
    path = _template_file(template, own) if own else None
    prompt = read_template_text(read_file(path), label=path.name) if path else None
    if prompt is None:
        file = f"{_TEMPLATE_FOLDER}/{template}{_TEMPLATE_SUFFIX}{META_XML_SUFFIX}"
        return (
            f"the custom scorer {name!r} judges by the prompt template {template!r}, whose text cannot be found; "
            f"add {file} to the project, for example with `sf project retrieve start -m GenAiPromptTemplate:{template}`"
        )
    if unknown := unknown_fields(prompt):
        return f"the prompt template {template!r} uses {', '.join(unknown)}, which only an org can fill"
    labels = tuple(output for output in version.outputs if not output.is_system_fallback)
    return PromptScorer(name, version.number or 0, prompt, scorer.json_type, labels, version.values)


def _template_file(name: str, project: Project) -> Path | None:
    """Return a template's file: anywhere in the package directories, or in a plain folder's own folder."""
    folders = project.package_directories if project.is_dx else (project.root / _TEMPLATE_FOLDER,)
    wanted = f"{name}{_TEMPLATE_SUFFIX}".casefold()
    files = (path for folder in folders if folder.is_dir() for path in files_below(folder))
    return min((file for file in files if file.name.removesuffix(META_XML_SUFFIX).casefold() == wanted), default=None)


def _project(root: Path) -> Project | None:
    try:
        return find_project(root, with_settings=False)
    except EvalmetaError:
        return None
