"""The wings: formats of other systems, each registered in `plugins.py` as an installed package registers its own."""
