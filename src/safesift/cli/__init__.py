"""The command `safesift`."""
