"""Agents in Agent Script, carried out without an org: the adapter agent_script."""
