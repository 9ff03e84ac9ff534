"""The agent under test, kept beside its tests."""
