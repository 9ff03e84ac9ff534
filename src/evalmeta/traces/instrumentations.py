"""What users switch on so that frameworks record spans, and the content of messages in them."""

from __future__ import annotations

import sys
from typing import Final, NamedTuple


class Instrumentation(NamedTuple):
    """A framework that records spans only if that is switched on.

    Attributes:
        module: the module that is loaded if the framework is used.
        framework: its name.
        switch: what switches the spans on.
    """

    module: str
    framework: str
    switch: str


INSTRUMENTATIONS: Final = (
    Instrumentation("pydantic_ai", "pydantic-ai", "call Agent.instrument_all()"),
    Instrumentation(
        "agent_framework", "agent-framework", "call enable_instrumentation(enable_sensitive_data=True)"
    ),
    *(
        Instrumentation(
            module, framework, f"call {name}().instrument() of openinference-instrumentation-{package or framework}"
        )
        for module, framework, name, package in (
            ("langchain_core", "langchain", "LangChainInstrumentor", ""),
            ("agents.tracing", "openai-agents", "OpenAIAgentsInstrumentor", ""),
            ("llama_index", "llama-index", "LlamaIndexInstrumentor", ""),
            ("crewai", "crewai", "CrewAIInstrumentor", ""),
            ("smolagents", "smolagents", "SmolagentsInstrumentor", ""),
            ("dspy", "dspy", "DSPyInstrumentor", ""),
        )
    ),
)  # fmt: skip

CONTENT_SETTINGS: Final = {
    "gcp.vertex.agent": (
        "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT and "
        "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"
    ),
    "agent_framework": "call enable_instrumentation(enable_sensitive_data=True)",
}
"""What adds the content of messages to spans, by the name of the instrumentation that made them."""
ANY_CONTENT_SETTING: Final = "let the instrumentation capture the content of messages"


def missing_instrumentation() -> str:
    """Return what switches on the spans of the frameworks that are loaded in this process."""
    used = [f"{known.framework}: {known.switch}" for known in INSTRUMENTATIONS if known.module in sys.modules]
    listed = f" ({'; '.join(used)})" if used else ""
    return f"switch on the instrumentation of the agent's framework{listed}"
