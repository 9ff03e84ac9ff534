"""Requests in, replies out: one module per API."""
