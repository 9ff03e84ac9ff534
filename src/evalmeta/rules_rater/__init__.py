"""The wing with the offline rater: rules that decide what is plain; no network, no key, no model.

The core loads it by its name (`model/entry_points.py`) and imports nothing of it.
"""
