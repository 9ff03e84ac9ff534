"""Agents that other agents ask: the protocol A2A (Agent2Agent), versions 1.0 and 0.3, over JSON-RPC."""
