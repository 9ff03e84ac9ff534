"""Ballerina: conversations, agents' traces and datasets."""
