"""Databricks Agent Evaluation and MLflow: rows, traces, metrics and tables."""
