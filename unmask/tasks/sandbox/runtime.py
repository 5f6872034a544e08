"""The files that a bare Python interpreter needs: all that a program in the sandbox can see of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from unmask.errors import UnmaskError

# Run by the interpreter itself: loads every extension module, then lists the libraries that this took.
_PROBE = """
import ctypes, json, os, sys
folders = [folder for folder in sys.path if os.path.isdir(folder)]
names = {entry.split(".")[0] for folder in folders for entry in os.listdir(folder) if ".so" in entry}
for name in names - {"_tkinter"}:  # there is no screen
    try:
        __import__(name)
    except BaseException:
        pass
try:
    ctypes.CDLL("libgcc_s.so.1")  # glibc loads it when the first thread ends
except OSError:
    pass
mapped = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if "/" in line}
print(json.dumps([folders, sorted(mapped)]))
"""
# Read by the standard library's zoneinfo and locale.
DATA = ("/usr/share/zoneinfo", "/usr/lib/locale/C.utf8", "/usr/lib/locale/C.UTF-8")


@dataclass(frozen=True)
class Runtime:
    paths: list[str]  # the interpreter, the standard library's folders, shared libraries
    hidden: list[str]  # folders of installed packages inside them
    links: list[tuple[str, str]]  # names under which libraries are looked for, and where these lead


def interpreter() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


@cache
def runtime() -> Runtime:
    probe = [interpreter(), "-I", "-S", "-B", "-c", _PROBE]
    try:
        output = subprocess.run(probe, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, cwd="/").stdout
        folders, mapped = json.loads(output.splitlines()[-1])
    except (OSError, subprocess.CalledProcessError, ValueError, IndexError):
        raise UnmaskError(f"{interpreter()} does not tell which libraries it loads") from None
    data = [folder for folder in DATA if Path(folder).is_dir()]
    folders = _outermost([*(os.path.realpath(folder) for folder in folders), *data])
    libraries = [path for path in mapped if Path(path).is_file() and not _inside(path, folders)]
    hidden = [str(path) for folder in folders for path in Path(folder).glob("*-packages") if path.is_dir()]
    return Runtime([*folders, *dict.fromkeys([interpreter(), *libraries])], hidden, _links(libraries))


def _outermost(folders: list[str]) -> list[str]:
    return [folder for folder in dict.fromkeys(folders) if not _inside(folder, folders)]


def _inside(path: str, folders: list[str]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)


def _links(libraries: list[str]) -> list[tuple[str, str]]:
    """`libz.so.1` beside `libz.so.1.3`, the loader's own name, and `/lib` where it is a link to `/usr/lib`."""
    roots = [path for path in ("/lib", "/lib32", "/lib64", "/usr/lib64") if Path(path).is_symlink()]
    folders = {os.path.realpath(path) for path in ("/lib64", "/usr/lib64", *map(os.path.dirname, libraries))}
    entries = [entry for folder in sorted(folders) if Path(folder).is_dir() for entry in os.scandir(folder)]
    names = [entry.path for entry in entries if entry.is_symlink() and os.path.realpath(entry.path) in libraries]
    return [(path, os.path.realpath(path)) for path in (*roots, *sorted(names))]
