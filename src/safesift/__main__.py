"""The command `safesift`, also as `python -m safesift`."""

from __future__ import annotations

import io
import signal
import sys

from safesift.registry import require


def main() -> None:
    """Run the command line, or say in one sentence what to install for it."""
    try:
        require("The command line", "click", "rich", "pyarrow")
    except ImportError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    from safesift.cli.commands import cli

    # a terminated run cleans up like an interrupted one
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a terminal without the mathematical signs shows "?" in their place
            stream.reconfigure(errors="replace")
    cli(prog_name="safesift")


if __name__ == "__main__":
    main()
