"""Errors that are for people.

Whatever a person can mend (a name that does not exist, a broken file, a full disk, a server
that is not there) is raised as a `UserError` whose text says what happened, where, and what
to do. The command line prints the text and exits with code 2; everything else is a defect.
"""

from __future__ import annotations


class UserError(Exception):
    """Something a person can mend. The text is complete: what, where, what to do."""
