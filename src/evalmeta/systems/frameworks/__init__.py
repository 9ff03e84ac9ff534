"""Agents of frameworks, asked as they are: a module for each kind, named in `model/entry_points.py` by its package."""
