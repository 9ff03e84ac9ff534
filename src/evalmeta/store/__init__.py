"""The data of an org: components, jobs, runs and their results; each is committed before it is reported."""
