"""Same task, seed and actions: the same game in another process, on another day, drawn or not.

Run as a script, this file plays every task and prints a fingerprint of each episode; the
test runs it twice in circumstances as different as they can be made, and compares.
"""

from __future__ import annotations

import ctypes
import datetime
import hashlib
import json
import os
import platform
import random
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEEDS = (42, 43, 44)
LIMITS = {"NetHackChallenge-v0": 1_000}
"""Steps of an episode where the game's own limit is too far away for a test."""

NEW_MOON, FULL_MOON = 0, 4


@pytest.fixture(scope="module")
def fingerprints(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, dict]:
    """What the two processes saw: plain on a day of new moon, drawn on a day of full moon."""
    folder = tmp_path_factory.mktemp("elsewhere")
    plain = _run({"PYTHONHASHSEED": "0"}, folder, drawn=False, moon=NEW_MOON)
    drawn = _run({"PYTHONHASHSEED": "4321", "LANG": "C", "PYTHONMALLOC": "malloc"}, folder, drawn=True, moon=FULL_MOON)
    return plain, drawn


def test_games_repeat_in_another_process_drawn_or_not(fingerprints: tuple[dict, dict]) -> None:
    plain, drawn = fingerprints
    differing = [name for name in plain["episodes"] if plain["episodes"][name] != drawn["episodes"].get(name)]
    assert differing == []
    assert len(plain["episodes"]) == len(drawn["episodes"]) == 10 * len(SEEDS)


def test_seeds_give_different_games(fingerprints: tuple[dict, dict]) -> None:
    plain, _ = fingerprints
    prints = [episode["print"] for episode in plain["episodes"].values()]
    assert len(set(prints)) == len(prints)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc takes the calendar of a process from a file")
def test_the_two_processes_lived_on_different_days(fingerprints: tuple[dict, dict]) -> None:
    plain, drawn = fingerprints
    assert abs(datetime.date.fromisoformat(plain["day"]) - datetime.date.fromisoformat(drawn["day"])).days > 7


def _run(environment: Mapping[str, str], folder: Path, drawn: bool, moon: int) -> dict:
    """Play all episodes in a process of its own, as if today had that phase of the moon."""
    calendar = folder / f"moon-{moon}.tzif"
    calendar.write_bytes(_calendar(_days_until(moon)))
    command = [sys.executable, str(Path(__file__).resolve()), str(calendar), "drawn" if drawn else "plain"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    played = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert played.returncode == 0, played.stderr
    return json.loads(played.stdout.splitlines()[-1])


def _days_until(phase: int) -> int:
    """Days from today to a day whose moon NetHack takes for this phase (0 to 7, 4 is full)."""
    today = datetime.date.today()
    return next(days for days in range(60) if _moon(today + datetime.timedelta(days)) == phase)


def _moon(day: datetime.date) -> int:
    """The phase that NetHack reckons from the golden number and the epact of the year."""
    golden = (day.year - 1900) % 19 + 1
    epact = (11 * golden + 18) % 30
    if epact == 24 or (epact == 25 and golden > 11):
        epact += 1
    day_of_year = day.timetuple().tm_yday - 1
    return ((day_of_year + epact) * 6 + 11) % 177 // 22 & 7


def _calendar(days: int) -> bytes:
    """A time zone that is whole days ahead: C code that asks for the local time gets another day.

    The format is TZif (RFC 8536), one type, no transitions.
    """
    header = b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    return header + struct.pack(">lbB", days * 86_400, 0, 0) + b"DAY\0"


def _local_day() -> str:
    """Today, as C code in this process sees it."""
    clock = ctypes.CDLL(None)
    clock.localtime.restype = ctypes.POINTER(ctypes.c_int * 9)
    second = ctypes.c_long(int(datetime.datetime.now().timestamp()))
    fields = clock.localtime(ctypes.byref(second)).contents
    return datetime.date(fields[5] + 1900, fields[4] + 1, fields[3]).isoformat()


def _episode(task: str, seed: int, drawn: bool) -> dict:
    """Play random actions to the end; how many steps that took, and a hash of all that came back."""
    import games

    options = {"max_steps": LIMITS[task]} if task in LIMITS else {}
    game = games.make(task, **options)
    names = list(game.actions)
    actions = _actions(names, f"{task} {seed}")
    seen = hashlib.sha256(repr(names).encode())
    seen.update(game.reset(seed).text.encode())
    steps = 0
    done = False
    while not done:
        moved = game.step(next(actions))
        progress = (moved.progress.progression, sorted(moved.progress.achievements.items()))
        outcome = (moved.reward, moved.terminated, moved.truncated, progress, sorted(moved.progress.facts.items()))
        seen.update(repr((moved.observation.long_term, moved.observation.short_term, outcome)).encode())
        steps += 1
        done = moved.done
        if drawn:
            game.screen()
            if hasattr(game, "image"):
                game.image((99 + steps % 2, 90))
    game.close()
    return {"steps": steps, "print": seen.hexdigest()}


def _actions(names: Sequence[str], seed: str) -> Iterator[str]:
    """Random actions, half of them walking, with a way out of the menus where random players end up."""
    choose = random.Random(seed)
    walking = names[:16]
    leaving = [name for name in names if name == "esc"] or names
    while True:
        yield choose.choice(choose.choices((walking, leaving, names), weights=(5, 2, 3))[0])


def _play_all(calendar: str, drawn: bool) -> None:
    # Python itself refuses such a time zone when it starts, so it is set from within.
    os.environ["TZ"] = calendar
    import games

    episodes = {f"{task} {seed}": _episode(task, seed, drawn) for task in games.tasks()[:10] for seed in SEEDS}
    print(json.dumps({"day": _local_day(), "episodes": episodes}))


if __name__ == "__main__":
    _play_all(sys.argv[1], sys.argv[2] == "drawn")
