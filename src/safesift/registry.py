"""Names: of losses, penalties, regions; of what higher layers provide for lower ones; of extras.

An extra brings packages that `pip install safesift` does not: an error about one names it.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

# names less alike than this have nothing to do with each other
_NEAR = 0.5


def resolve(argument: str, value: Any, table: Mapping[str, Callable[[], T]], base: type[Any]) -> T:
    """Turn a name or an object into an object of type `base`.

    Parameters
    ----------
    argument : str
        The name of the argument, for the error message.
    value : str or object
        A key of `table`, or an instance of `base`, which is returned as it is.
    table : mapping of str to callable
        The known names; the type found, or what makes an object, is called without parameters.
    base : type
        What an object must be an instance of.
    """
    if isinstance(value, base):
        return value
    if isinstance(value, str):
        if value in table:
            return table[value]()
        raise unknown_name(argument, value, table)
    if isinstance(value, type) and issubclass(value, base):
        raise TypeError(
            f"{argument} is the class {value.__name__}: pass an object, {value.__name__}(...)."
        )
    raise TypeError(
        f"{argument} must be a name or a {base.__name__} object, "
        f"got {type(value).__name__}: choose one of {', '.join(sorted(table))}."
    )


def unknown_name(argument: str, value: object, table: Mapping[str, object]) -> ValueError:
    """What to raise for a name that is not in a table: it says which one is near, if any is."""
    near = difflib.get_close_matches(str(value).lower(), table, n=1, cutoff=_NEAR)
    choose = f"did you mean {near[0]!r}? Choose" if near else "choose"
    return ValueError(
        f"{argument}={value!r} is not known: {choose} one of {', '.join(sorted(table))}."
    )


# name -> the module that holds it
_PROVIDED: dict[str, str] = {}


def provide(name: str, module: str) -> None:
    """Say which module holds a function that lower layers may ask for by its name."""
    _PROVIDED[name] = module


def provided(name: str) -> Callable[..., Any]:
    """A function of a higher layer: how a result draws itself without knowing of pictures.

    Raises
    ------
    ImportError
        That names the extra to install, where the layer needs a package that is not there.
    """
    try:
        return getattr(importlib.import_module(_PROVIDED[name]), name)
    except ImportError as error:
        raise naming_extra(error) from None


# --- extras ---------------------------------------------------------------------------------


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
    "distributed": Extra("distributed", "dask", "A cluster"),
    "dask": Extra("distributed", "dask", "A cluster"),
    "matplotlib": Extra("matplotlib", "plot", "A picture"),
    "imblearn": Extra("imbalanced-learn", "sampler", "A sampler"),
}


def require(purpose: str, *packages: str) -> None:
    """Raise the error that names the extra, unless all packages are installed."""
    absent = [package for package in packages if find_spec(package) is None]
    if absent:
        raise missing_extra(purpose, *absent)


def missing_extra(purpose: str, *packages: str) -> ImportError:
    """What to raise where packages are not installed: it says how to install them."""
    projects = " and ".join(OPTIONAL[package].project for package in packages)
    extras = ",".join(sorted({OPTIONAL[package].extra for package in packages}))
    return ImportError(f"{purpose} needs {projects}: pip install 'safesift[{extras}]'.")


def naming_extra(error: ImportError) -> ImportError:
    """The error that names the extra, where it is an optional package that was not found."""
    package = (error.name or "").partition(".")[0]
    return missing_extra(OPTIONAL[package].purpose, package) if package in OPTIONAL else error
