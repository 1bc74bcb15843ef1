"""The command `safesift`.

A package adds a command of its own by an entry point of the group `safesift.commands` that names a
click command; `in_one_sentence` lets it refuse as the others do.
"""

from safesift.cli.plugins import Refusal, in_one_sentence

__all__ = ["Refusal", "in_one_sentence"]
