"""Getting the official Boxoban levels once (Apache-2.0, DeepMind)."""

from __future__ import annotations

import http.client
import os
import shutil
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from games.boxoban.levels import LEVEL_SETS, BoxobanError, cache_folder, parse

ARCHIVE = "https://github.com/google-deepmind/boxoban-levels/archive/refs/heads/master.zip"
VARIABLE = "AUTOMEM_BOXOBAN_ARCHIVE"
"""Another address for the same archive (a mirror, or a file:// copy)."""

_LARGEST = 400 * 2**20
_TIMEOUT = 60.0


def fetch(
    destination: Path | None = None, progress: Callable[[int, int], None] | None = None, force: bool = False
) -> Path:
    """Download the official levels, check every file, and put them in place all at once.

    Args:
        destination: the folder to fill; None for the user's cache, where episodes look for it.
        progress: called with bytes received so far and in all (0 when unknown).
        force: replace a folder that is already there.

    Returns:
        the folder, holding `hard/`, `medium/train/` and the licence.

    Raises:
        BoxobanError: offline, not the archive, a broken level file, or a folder that cannot be written.
    """
    target = cache_folder() if destination is None else Path(destination)
    if target.exists() and not force:
        if all((target / below).is_dir() for below in LEVEL_SETS.values()):
            return target
        raise BoxobanError(f"{target} is there, but holds no complete set of levels; remove it and fetch again")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".boxoban-", dir=target.parent) as work:
            archive = Path(work) / "levels.zip"
            _download(os.environ.get(VARIABLE) or ARCHIVE, archive, progress)
            unpacked = Path(work) / "levels"
            _unpack(archive, unpacked)
            if target.exists():
                target.rename(Path(work) / "old")
            unpacked.rename(target)
    except OSError as error:
        raise BoxobanError(f"cannot write Boxoban levels to {target}: {error}") from error
    return target


def _download(url: str, path: Path, progress: Callable[[int, int], None] | None) -> None:
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer, path.open("wb") as file:
            total = int(answer.headers.get("Content-Length") or 0)
            received = 0
            while block := answer.read(1 << 18):
                received += len(block)
                if received > _LARGEST:
                    raise BoxobanError(f"{url} is larger than the level archive can be; nothing was installed")
                file.write(block)
                if progress is not None:
                    progress(received, total)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise BoxobanError(
            f"cannot fetch Boxoban levels from {url}: {reason}. Without them levels are generated. "
            "On a machine that is online, copy the boxoban-levels repository here and set AUTOMEM_BOXOBAN_LEVELS "
            f"to its folder, or set {VARIABLE} to another address of the archive."
        ) from error
    if total and received != total:
        raise BoxobanError(f"{url} broke off after {received} of {total} bytes; nothing was installed, try again")


def _unpack(archive: Path, folder: Path) -> None:
    """Level files of the sets that are played, and the licence; every level is parsed."""
    counts = dict.fromkeys(LEVEL_SETS, 0)
    try:
        with zipfile.ZipFile(archive) as files:
            for member in files.infolist():
                inside = PurePosixPath(*PurePosixPath(member.filename).parts[1:])  # below the archive's own folder
                level_set = next((name for name, below in LEVEL_SETS.items() if str(inside.parent) == str(below)), None)
                if str(inside) != "LICENSE" and (level_set is None or inside.suffix != ".txt"):
                    continue
                path = folder / inside
                path.parent.mkdir(parents=True, exist_ok=True)
                with files.open(member) as source, path.open("wb") as copy:
                    shutil.copyfileobj(source, copy)
                if level_set is not None:
                    parse(path.read_text("utf-8"), str(inside))
                    counts[level_set] += 1
    except (zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise BoxobanError(f"what was fetched is not the archive of Boxoban levels: {error}") from error
    if missing := [name for name, count in counts.items() if count == 0]:
        raise BoxobanError(f"the archive of Boxoban levels has no {' and no '.join(missing)} levels")
