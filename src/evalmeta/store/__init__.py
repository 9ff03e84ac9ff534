"""What an org keeps: components, jobs, runs and their results, each committed before anyone is told."""
