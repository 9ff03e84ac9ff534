"""Servers of MCP (Model Context Protocol), whose tools are called: over stdio, or streamable HTTP."""
