"""Packages that some parts need and `pip install safesift` does not bring: which extra has them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple


class Extra(NamedTuple):
    """Where an optional package comes from.

    Attributes
    ----------
    project : str
        What it is called where it is installed from.
    extra : str
        The extra of safesift that brings it.
    purpose : str
        What it is needed for, unless somebody knows better.
    """

    project: str
    extra: str
    purpose: str


OPTIONAL = {
    "click": Extra("click", "cli", "The command line"),
    "rich": Extra("rich", "cli", "The command line"),
    "pyarrow": Extra("pyarrow", "cli", "A CSV or Parquet file"),
    "matplotlib": Extra("matplotlib", "plot", "A picture"),
    "imblearn": Extra("imbalanced-learn", "sampler", "A sampler"),
}


def require(purpose: str, *packages: str) -> None:
    """Raise the error that names the extra, unless all packages are installed."""
    absent = [package for package in packages if find_spec(package) is None]
    if absent:
        raise missing(purpose, *absent)


def missing(purpose: str, *packages: str) -> ImportError:
    """What to raise where packages are not installed: it says how to install them."""
    projects = " and ".join(OPTIONAL[package].project for package in packages)
    extras = ",".join(sorted({OPTIONAL[package].extra for package in packages}))
    return ImportError(f"{purpose} needs {projects}: pip install 'safesift[{extras}]'.")


def named(error: ImportError) -> ImportError:
    """The error that names the extra, where it is an optional package that was not found."""
    package = (error.name or "").partition(".")[0]
    return missing(OPTIONAL[package].purpose, package) if package in OPTIONAL else error
