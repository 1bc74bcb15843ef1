"""The command `safesift`, also as `python -m safesift`."""

from __future__ import annotations

import io
import signal
import sys
from importlib.util import find_spec

_NEEDED = ("click", "rich", "pyarrow")


def main() -> None:
    """Run the command line, or say in one sentence what to install for it."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        print(
            f"The command line needs {' and '.join(missing)}: "
            'install it with pip install "safesift[cli]"',
            file=sys.stderr,
        )
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
