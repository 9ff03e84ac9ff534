"""The preview API of a served org: `sf agent preview` and the adapter agentforce talk to drafts of agents.

The script is the client's. What chooses its steps, and what its actions answer, say the settings of the project that
serves the org.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

from starlette.routing import Route

from evalmeta import limits
from evalmeta.agent_script.evaluation import ScriptFault, render
from evalmeta.engine.redaction import with_redaction, without_matches
from evalmeta.engine.subjects import declared_settings
from evalmeta.errors import OrgFault, SettingsError, SubjectError
from evalmeta.model.evaluation import Case
from evalmeta.org.handlers import Handlers
from evalmeta.org.handlers.rest import authenticated, json_reply, no_resource, read_body
from evalmeta.org.subjects import agent_settings
from evalmeta.protocol import agent_preview
from evalmeta.protocol.agent_api import PREVIEWS_PATH
from evalmeta.protocol.agent_preview import AGENT_API, SCRIPTS_PATH, PreviewRequest
from evalmeta.protocol.json_fields import read_object
from evalmeta.systems.agent_script.definitions import agent_name, compile_script, read_definition
from evalmeta.systems.agent_script.plans import is_handed_off
from evalmeta.systems.agent_script.previews import Preview, Previews
from evalmeta.systems.agent_script.state import State
from evalmeta.systems.agent_script.subject import BUNDLE_NAME, AgentScriptSubject, model_lines
from evalmeta.validation.rules import rule_policy

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from evalmeta.agent_script.nodes import Script
    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import User
    from evalmeta.org.organization import Organization

_WELCOME: Final = "welcome"


@authenticated()
async def post_script(request: Request, org: Organization, _: User) -> Response:
    """Compile a script of Agent Script; the reply has its definition, or its errors."""
    source = agent_preview.read_script_request(await _body(request))

    def compiled() -> JsonObject:
        severity_of = rule_policy(org.settings()).severity
        definition, problems = compile_script(source, severity_of=severity_of)
        if definition is None:
            return agent_preview.write_uncompiled(problems)
        return agent_preview.write_compiled(definition)

    return json_reply(await asyncio.to_thread(compiled))


@authenticated()
async def post_session(request: Request, org: Organization, user: User) -> Response:
    """Start a conversation with a compiled script, and return what the agent says first."""
    asked = agent_preview.read_preview_request(await _body(request))
    script, subject = await asyncio.to_thread(_bind, org, asked)
    # What a case knows of its session: the values that its variables begin with.
    case = Case(1, (), state=asked.variables)
    try:
        greeting = without_matches(_greeting(script, case), org.settings().redact.patterns)
        preview = Preview(user.id, script, subject, await subject.open(case))
    except SubjectError as error:
        await subject.close()
        raise OrgFault(str(error), code="INVALID_INPUT", actions=error.actions) from error
    await _previews(request).add(preview)
    return json_reply(agent_preview.write_session(preview.id, str(request.base_url), greeting))


@authenticated()
async def post_message(request: Request, _: Organization, user: User) -> Response:
    """Send a message to the agent of a session, and return its answer."""
    # Sessions may end while a request arrives.
    message = agent_preview.read_preview_message(await _body(request))
    preview = _preview(request, user)
    generated, plan_id = await preview.answer(message)
    is_over = is_handed_off(generated)
    answer = agent_preview.write_message(generated.outcome, plan_id=plan_id, is_handed_off=is_over)
    return json_reply(agent_preview.write_answer(preview.id, str(request.base_url), answer))


@authenticated()
async def get_plan(request: Request, _: Organization, user: User) -> Response:
    """Return the plan of an answer: its topic, its actions and its other steps."""
    plan = _preview(request, user).plans.get(request.path_params["plan_id"])
    if plan is None:
        raise no_resource()
    return json_reply(plan)


@authenticated()
async def delete_session(request: Request, _: Organization, user: User) -> Response:
    """End a session."""
    preview = _preview(request, user)
    await _previews(request).end(preview)
    ended = agent_preview.write_session_end()
    return json_reply(agent_preview.write_answer(preview.id, str(request.base_url), ended))


async def _body(request: Request) -> JsonObject:
    return read_object(await read_body(request, limit=limits.MAX_PREVIEW_BYTES))


def _previews(request: Request) -> Previews:
    state = request.app.state
    if not hasattr(state, "previews"):
        state.previews = Previews()
    previews: Previews = state.previews
    return previews


def _preview(request: Request, user: User) -> Preview:
    return _previews(request).find(request.path_params["session_id"], user.id)


def _greeting(script: Script, case: Case) -> str:
    template = dict(script.messages).get(_WELCOME)
    if template is None:
        return ""
    try:
        return render(template, State(script, case).scope())
    except ScriptFault as fault:
        line, column = fault.position
        raise SubjectError(f"line {line}, column {column}: {fault}") from None


def _bind(org: Organization, asked: PreviewRequest) -> tuple[Script, Subject]:
    settings = org.settings()
    script = read_definition(asked.definition, severity_of=rule_policy(settings).severity)
    if not asked.is_simulated:
        raise OrgFault(
            "this org has no flows and no Apex classes, so actions cannot be live",
            code="INVALID_INPUT",
            actions=["Simulate the actions: sf agent preview start --simulate-actions."],
        )
    name = agent_name(script)
    if not re.fullmatch(BUNDLE_NAME, name):
        raise OrgFault(
            f"{name[:80]!r} is not a valid name of an agent" if name else "the script does not name its agent",
            code="INVALID_INPUT",
            actions=["Write a name of letters, digits and _ as developer_name in config."],
        )
    chosen = _settings_of(org, name)
    if org.is_served and (code := chosen.target or chosen.functions):
        raise SettingsError(
            f"the agent {name} uses Python code ({code}), which a served org runs only for tests",
            actions=[f'Add a table with adapter = "agent_script", bundle = "{name}" and a model or rules.'],
        )
    subject = chosen.bind_script(script, f"{name}.agent", root=org.root)
    return script, with_redaction(subject, settings.redact.patterns)


def _settings_of(org: Organization, name: str) -> AgentScriptSubject:
    """Return the settings of the agent itself, or else of its bundle; those of its usual rules without any."""
    subjects = org.settings().subjects
    named = agent_settings(subjects, name, root=org.root)
    found = [declared_settings(settings) for settings in (named, *subjects.values()) if settings]
    scripts = [settings for settings in found if isinstance(settings, AgentScriptSubject)]
    bound = next((settings for settings in scripts if settings is named or settings.bundle == name), None)
    if bound is None and named is not None:
        raise SettingsError(
            f"the agent {name} has the adapter {named.adapter}, and no table has the adapter agent_script for it",
            actions=[f"Add a table to evalmeta.toml, with a model or rules:\n\n{model_lines(name, f'{name}_Script')}"],
        )
    return bound or AgentScriptSubject(adapter="agent_script", bundle=name)


_SESSION: Final = f"{AGENT_API}{PREVIEWS_PATH}/{{session_id}}"
HANDLERS: Final = Handlers(
    [
        Route(AGENT_API + SCRIPTS_PATH, post_script, methods=["POST"]),
        Route(AGENT_API + PREVIEWS_PATH, post_session, methods=["POST"]),
        Route(_SESSION + "/messages", post_message, methods=["POST"]),
        Route(_SESSION + "/plans/{plan_id}", get_plan, methods=["GET"]),
        Route(_SESSION, delete_session, methods=["DELETE"]),
    ]
)
