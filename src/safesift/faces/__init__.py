"""Pictures, reports, files and streams for people."""
