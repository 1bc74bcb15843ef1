"""How commands refuse: in one sentence, without a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click


class Refusal(click.ClickException):
    """One sentence on stderr, exit code 2."""

    exit_code = 2


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Show what the library or the system refuses as a sentence, without a traceback."""
    try:
        yield
    except BrokenPipeError:
        raise  # whoever read the output went away: click ends quietly
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise Refusal(f"{where}{error.strerror or error}.") from error
    except (ValueError, TypeError, MemoryError) as error:
        raise Refusal(str(error) or type(error).__name__) from error
