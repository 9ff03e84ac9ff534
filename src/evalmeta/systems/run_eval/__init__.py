"""Payloads of `sf agent test run-eval`, read as evaluations and written from definitions."""
