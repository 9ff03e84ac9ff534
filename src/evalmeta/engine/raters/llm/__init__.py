"""The rater that asks a language model: samples, their majority, and what vetoes it."""
