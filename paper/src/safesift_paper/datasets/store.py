"""Files of public data sets: looked for in SAFESIFT_DATA, then in the cache, then downloaded.

A file gets into the cache under its name only when its checksum is right, so what is found there
needs no further check.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.request import Request, urlopen

from safesift import progress

_CHUNK = 2**20
_TIMEOUT_SECONDS = 30.0


class DataUnavailableError(ValueError):
    """A data set is nowhere to be had; the message says where it was looked for."""


@dataclass(frozen=True)
class RemoteFile:
    """A file that anybody can download.

    Attributes
    ----------
    name : str
        Its name in every folder.
    urls : tuple of str
        Where it is, tried in this order.
    checksum : str
        The name of an algorithm of hashlib, a colon, and the digits.
    """

    name: str
    urls: tuple[str, ...]
    checksum: str


def data_folder() -> Path | None:
    """The user's own folder of data sets, named by SAFESIFT_DATA."""
    named = os.environ.get("SAFESIFT_DATA")
    return Path(named).expanduser() if named else None


def cache_folder() -> Path:
    """Where downloads and what is computed from them are kept: SAFESIFT_CACHE names another."""
    return Path(os.environ.get("SAFESIFT_CACHE") or "~/.cache/safesift").expanduser()


def local(name: str) -> Path | None:
    """The file of that name in SAFESIFT_DATA or in the cache, if there is one."""
    for folder in (data_folder(), cache_folder()):
        if folder is not None and (folder / name).is_file():
            return folder / name
    return None


def fetch(file: RemoteFile) -> Path:
    """The path of a file, downloaded if it is neither in SAFESIFT_DATA nor in the cache.

    Raises
    ------
    DataUnavailableError
        If it can be had from none of its addresses, or is not what it should be.
    """
    found = local(file.name)
    if found is None:
        return _download(file)
    if found.parent != cache_folder() and _checksum(found, file) != file.checksum:
        raise DataUnavailableError(
            f"{found} is not the file that was published (its checksum is not {file.checksum}): "
            f"replace it by the one from {file.urls[0]}, or delete it and it will be downloaded."
        )
    return found


def fetch_all(files: Iterable[RemoteFile]) -> list[Path]:
    """The paths of several files."""
    return [fetch(file) for file in files]


def _download(file: RemoteFile) -> Path:
    target = cache_folder() / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    # of this process alone: two that download the same file do not write into each other's
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    reasons = []
    try:
        for url in file.urls:
            try:
                found = _copy(url, part, file)
            except (OSError, HTTPException) as error:
                reasons.append(f"{url}: {getattr(error, 'reason', None) or error}")
                continue
            if found == file.checksum:
                part.replace(target)
                return target
            reasons.append(f"{url}: the checksum is {found} in place of {file.checksum}")
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
    raise DataUnavailableError(
        f"{file.name} is neither in {_own_folder()} nor in the cache {cache_folder()}, and could "
        f"not be downloaded ({'; '.join(reasons)}): connect to the internet, or put the file into "
        "one of these folders."
    )


def _own_folder() -> str:
    folder = data_folder()
    return "SAFESIFT_DATA (not set)" if folder is None else f"SAFESIFT_DATA ({folder})"


def _copy(url: str, path: Path, file: RemoteFile) -> str:
    """Write what is at an address to a path; its checksum."""
    request = Request(url, headers={"User-Agent": "safesift"})
    with urlopen(request, timeout=_TIMEOUT_SECONDS) as source, path.open("wb") as copy:
        total = int(source.headers.get("Content-Length") or 0)
        done = 0
        while chunk := source.read(_CHUNK):
            copy.write(chunk)
            done += len(chunk)
            progress.report(f"downloading {file.name}", done, max(done, total))
    return _checksum(path, file)


def _checksum(path: Path, file: RemoteFile) -> str:
    algorithm = file.checksum.split(":")[0]
    with path.open("rb") as content:
        return f"{algorithm}:{hashlib.file_digest(content, algorithm).hexdigest()}"
