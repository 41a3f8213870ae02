"""The rules, one idea a file. A new one is a file and a line in `ALL`."""

from __future__ import annotations

from collections.abc import Sequence

from meta.reviewers.rules.proposal import Rule
from meta.reviewers.rules.rules.places import LogBecomesMap
from meta.reviewers.rules.rules.stuck import Stuck

ALL: Sequence[Rule] = (LogBecomesMap(), Stuck())
