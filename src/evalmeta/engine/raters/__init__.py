"""Raters: they return a rating from 0 to 5 for an expectation and an answer, or say that they cannot."""
