"""What is in a wheel and in a source archive; `python -m tests.archives dist` looks at those built.

The checker lives under check and is linked from src: an archive must have the files, not the links.
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src"
# what a source archive has besides src: what it takes to build, and to know what it is
_ABOUT = {
    "CHANGELOG.md", "CITATION.cff", "LICENSE", "MANIFEST.in", "PKG-INFO", "README.md",
    "pyproject.toml", "setup.cfg",
}  # fmt: skip

Files = Mapping[str, bytes]


def wheel_files(path: Path) -> Files:
    """The files of a wheel."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def source_files(path: Path) -> Files:
    """The files of a source archive, without its own folder; a link has no content."""
    with tarfile.open(path) as archive:
        members = [member for member in archive.getmembers() if not member.isdir()]
        contents = {
            member.name.partition("/")[2]: archive.extractfile(member) if member.isfile() else None
            for member in members
        }
        return {name: file.read() if file else b"" for name, file in contents.items()}


def faults_of_wheel(found: Files) -> list[str]:
    """What is wrong with a wheel."""
    tops = {name.partition("/")[0] for name in found if ".dist-info/" not in name}
    others = tops - {"safesift", *(path.name for path in SRC.glob("*.py"))}
    return [*_differences(found, ""), *(f"{name} does not belong in it" for name in others)]


def faults_of_source(found: Files) -> list[str]:
    """What is wrong with a source archive."""
    others = {name.partition("/")[0] for name in found} - {"src", *_ABOUT}
    return [*_differences(found, "src/"), *(f"{name} does not belong in it" for name in others)]


def package() -> list[Path]:
    """The files of the package and of the checker, whatever they are."""
    files = [path for path in (SRC / "safesift").rglob("*") if path.is_file()]
    return [*SRC.glob("*.py"), *(path for path in files if path.parent.name != "__pycache__")]


def _differences(found: Files, folder: str) -> list[str]:
    """Files of the package that are missing, or not what they are in the checkout."""
    expected = {folder + path.relative_to(SRC).as_posix(): path.read_bytes() for path in package()}
    faults = [f"{name} is missing" for name in expected.keys() - found.keys()]
    same = expected.keys() & found.keys()
    return faults + [f"{name} is not the file" for name in same if found[name] != expected[name]]


def main() -> None:
    folder = Path(sys.argv[1])
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    faults = {
        wheel.name: faults_of_wheel(wheel_files(wheel)),
        source.name: faults_of_source(source_files(source)),
    }
    for name, said in faults.items():
        print(f"{name}: {'; '.join(sorted(said)) or 'what it should be'}")
    sys.exit(any(faults.values()))


if __name__ == "__main__":
    main()
