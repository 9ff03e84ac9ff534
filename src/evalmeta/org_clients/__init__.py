"""Requests that only other clients send to a served org: queries, records, single components, REST deployments."""
