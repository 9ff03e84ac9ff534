"""LangChain: python langchain_agent.py FILE openinference|openllmetry."""

import asyncio
import sys

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from recording import provider

if sys.argv[2] == "openinference":
    from openinference.instrumentation.langchain import LangChainInstrumentor as Instrumentor
else:
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor as Instrumentor

Instrumentor().instrument(tracer_provider=provider())


class Model(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        return self


class Retriever(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document("Orders are sent within a day.", metadata={"source": "docs/orders.md"}, id="d1")]


@tool
def get_order(id: str) -> dict:
    """Find an order."""
    Retriever().invoke("when are orders sent")
    return {"id": id, "state": "sent"}


def usage(tokens_in, tokens_out):
    return {"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}


model = Model(
    messages=iter(
        [
            AIMessage(
                "", tool_calls=[{"name": "get_order", "args": {"id": "10045"}, "id": "c1"}], usage_metadata=usage(10, 3)
            ),
            AIMessage("Your order 10045 is on its way.", usage_metadata=usage(20, 8)),
            AIMessage("You are welcome.", usage_metadata=usage(5, 1)),
        ]
    )
)
agent = create_agent(model, tools=[get_order], name="order_desk", checkpointer=InMemorySaver())


async def main():
    settings = {"configurable": {"thread_id": "conversation-1"}}
    for question in ("Where is order 10045?", "Thanks"):
        await agent.ainvoke({"messages": [{"role": "user", "content": question}]}, settings)


asyncio.run(main())
