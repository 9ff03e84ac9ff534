"""Traces of agents (OpenTelemetry): what they say of the utterance, answer, actions, topic and tokens."""
