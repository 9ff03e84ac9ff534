"""Agents under test: one module for each adapter, and what adapters share."""
