"""Pages of Markdown are doctests; what builds the site, and what it makes, is not collected."""

collect_ignore = ["conf.py", "api", "gallery", "tutorials"]
