"""`command`: any coding agent with a command line (`CommandReviewer`), or a script.

It gets a workspace with its task, read-only traces that it can ask with ``automem trace``, and a copy of the
scaffold; what it leaves in the copy is the revision. The command is the user's choice, but what it works on was
written by a game and a model and may trick it. So it runs in bubblewrap with nothing in view but programs and its
workspace (`meta.reviewers.command.view`), without network, home folder or environment unless the user opens them,
and within limits of time, memory, processes and files (`meta.reviewers.command.options`).
"""

from __future__ import annotations

from meta.reviewers.command.options import CommandOptions
from meta.reviewers.command.reviewer import CommandReviewer

__all__ = ["CommandOptions", "CommandReviewer"]
