"""The command `safesift reproduce`. What is slow to import is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from safesift.cli import in_one_sentence

_PATH = click.Path(path_type=Path)


@click.command(short_help="Run the paper's experiments again, and put its numbers beside ours.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--out",
    type=_PATH,
    default="results",
    show_default=True,
    metavar="FOLDER",
    help="Where results, pictures and the page go. What is finished there is not run again.",
)
@click.option("--quick", is_flag=True, help="A small version on small data, in minutes.")
@click.option(
    "--stand-in",
    "stand_ins",
    multiple=True,
    metavar="DATA",
    help="Use cifar10 in place of svhn, or imdb in place of rcv1; may be given twice.",
)
@click.option(
    "--page", type=_PATH, metavar="FILE", help="The page.  [default: FOLDER/reproduction.md]"
)
@click.option("--page-only", is_flag=True, help="Run nothing: write the page from what is there.")
def reproduce(**options: Any) -> None:
    """Run experiments of the paper: table1 … table4, figure1 … figure8, or all of them.

    MNIST, SVHN and RCV-1 are looked for in the folder SAFESIFT_DATA, then in the cache
    (SAFESIFT_CACHE, by default ~/.cache/safesift), and are downloaded otherwise. A run that was
    interrupted goes on where it was.
    """
    with in_one_sentence():
        from safesift_paper.reproduction import run

        run(options)
