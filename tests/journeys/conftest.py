collect_ignore = ["projects"]
