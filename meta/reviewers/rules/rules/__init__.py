"""The rules, one idea a file. A new one is a file and a line in `ALL`."""

from __future__ import annotations

from collections.abc import Sequence

from meta.reviewers.rules.proposal import Rule
from meta.reviewers.rules.rules.bounds import Bounds
from meta.reviewers.rules.rules.duplicates import Duplicates
from meta.reviewers.rules.rules.invalid import Invalid
from meta.reviewers.rules.rules.keys import RepeatedKeys
from meta.reviewers.rules.rules.limits import Limits
from meta.reviewers.rules.rules.pins import Pins
from meta.reviewers.rules.rules.places import LogBecomesMap
from meta.reviewers.rules.rules.searches import Searches
from meta.reviewers.rules.rules.stuck import Stuck
from meta.reviewers.rules.rules.topics import Topics
from meta.reviewers.rules.rules.window import Window

ALL: Sequence[Rule] = (
    LogBecomesMap(),
    RepeatedKeys(),
    Topics(),
    Bounds(),
    Pins(),
    Duplicates(),
    Searches(),
    Invalid(),
    Limits(),
    Window(),
    Stuck(),
)
