"""Ballerina's agent tests in Python: recorded conversations, traces, and functions on traces.

    from evalmeta import ballerina

    trace = ballerina.trace_of(answer("Send an email to Raj"))
    assert [call.name for call in ballerina.get_all_tool_calls(trace)] == ["sendEmail"]

Functions and types have the names of `ballerina/ai` and of the proposal "Evaluation for AI
Agents in Ballerina" (ballerina-spec, issue 1402), in Python's spelling.
"""

from __future__ import annotations

from evalmeta.systems.ballerina.agent_tests import (
    assert_tool_call,
    get_all_tool_calls,
    load_conversation_threads,
    trace_of,
)
from evalmeta.systems.ballerina.traces import (
    ChatAssistantMessage,
    ChatFunctionMessage,
    ChatMessage,
    ChatSystemMessage,
    ChatUserMessage,
    ConversationThread,
    FunctionCall,
    Iteration,
    ToolSchema,
    Trace,
    TraceError,
    get_errors,
    get_final_answer,
    get_total_execution_time,
    get_user_query,
    has_error,
)

__all__ = [
    "ChatAssistantMessage",
    "ChatFunctionMessage",
    "ChatMessage",
    "ChatSystemMessage",
    "ChatUserMessage",
    "ConversationThread",
    "FunctionCall",
    "Iteration",
    "ToolSchema",
    "Trace",
    "TraceError",
    "assert_tool_call",
    "get_all_tool_calls",
    "get_errors",
    "get_final_answer",
    "get_total_execution_time",
    "get_user_query",
    "has_error",
    "load_conversation_threads",
    "trace_of",
]
