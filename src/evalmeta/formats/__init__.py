"""Formats of other systems: each read into the model and, where it can hold the same, written back."""
