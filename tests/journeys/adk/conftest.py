collect_ignore = ["project"]
