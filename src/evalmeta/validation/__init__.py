"""Validation of metadata: schemas for the structure, a table of rules for everything else."""
