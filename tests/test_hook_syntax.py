"""Syntax trees of hooks, by as many threads as a loop has attempts side by side."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from automem.hooks import source
from automem.hooks.syntax import NotPython, parse


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads that give way to each other all the time, also while a tree is built: where memory is cleared away."""

    def give_way(phase: str, info: object) -> None:
        time.sleep(0)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    gc.callbacks.append(give_way)
    yield
    gc.callbacks.remove(give_way)
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
def test_threads_that_read_at_the_same_time_do_not_disturb_each_other() -> None:
    text = Path(source.__file__).read_text()
    with ThreadPoolExecutor(4) as threads:
        trees = list(threads.map(parse, [text] * 80))
    assert all(len(tree.body) == len(trees[0].body) for tree in trees)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a = 1\nb =", 2, "not Python: invalid syntax"),
        ("a\0", 1, ".*source code string cannot contain null bytes"),
        ("-" * 100_000 + "1", 1, ""),
    ],
)
def test_what_is_no_python_is_one_error_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(NotPython, match=f"^{message}") as caught:
        parse(text)
    assert caught.value.line == line
