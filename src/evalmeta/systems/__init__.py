"""The wings: formats of other systems, each named in `model/entry_points.py` as packages name theirs."""
