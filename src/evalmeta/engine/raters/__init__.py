"""Raters: they turn an expected and an actual text into a rating of 0 to 5."""
