"""The offline rater: rules decide clear cases, without network, key or model.

The core loads it by its name (`model/entry_points.py`) and imports nothing of it.
"""
