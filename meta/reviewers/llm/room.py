"""What the tools of a review work on: runs and versions by the names that the model uses, and the candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from automem import lineage, scaffold
from automem.check import Report
from automem.check.folder import NOTES, contents
from automem.errors import UserError
from automem.lineage import SHORT, Version
from automem.scaffold import Scaffold
from automem.trace import RunTrace
from meta.evidence import Attempt, Evidence
from meta.reviewer import Desk

PARENT = "parent"
CANDIDATE = "candidate"


@dataclass
class Room:
    """A review under way.

    Attributes:
        evidence: what may be known.
        desk: where the candidate lies.
        checked: what the checker said of the candidate as it is now; None when it was edited since.
        finished: description and analysis, once the model has finished.
    """

    evidence: Evidence
    desk: Desk
    checked: Report | None = None
    finished: tuple[str, str] | None = None
    _traces: dict[str, RunTrace] = field(default_factory=dict)
    _ancestors: list[Version] | None = None

    def attempt(self, number: str) -> Attempt:
        """An earlier attempt. Raises `UserError` that lists them."""
        for attempt in self.evidence.attempts:
            if attempt.number == number.strip():
                return attempt
        raise UserError(f"there is no attempt {number!r}. {self._listed()}")

    def trace(self, name: str) -> RunTrace:
        """How a version was played: ``parent``, or the number of an attempt. Raises `UserError`."""
        if name == PARENT:
            return self.evidence.run
        if name not in self._traces:
            attempt = self.attempt(name)
            trace = attempt.trace()
            if trace is None:
                raise UserError(f"attempt {name} was not played: it ended as {attempt.outcome}. {attempt.why}")
            self._traces[name] = trace
        return self._traces[name]

    def sources(self, name: str) -> Mapping[str, bytes]:
        """Files of a version, relative path -> bytes: of what `version` takes. It need not load."""
        if name == PARENT:
            return _without_notes(self.evidence.parent.sources)
        if name == CANDIDATE:
            return _without_notes(contents(self.desk.candidate).sources)
        ancestor = self._ancestor(name)
        return _without_notes(contents(ancestor.place if ancestor else self.attempt(name).candidate).sources)

    def version(self, name: str) -> Scaffold:
        """A version, loaded: ``parent``, ``candidate``, an attempt's number, the beginning of an ancestor's identity.

        Raises `UserError`, also when it does not load.
        """
        return without_notes(self._loaded(name))

    def _loaded(self, name: str) -> Scaffold:
        if name == PARENT:
            return self.evidence.parent
        if name == CANDIDATE:
            return scaffold.load(str(self.desk.candidate.resolve()))
        ancestor = self._ancestor(name)
        return scaffold.load(str(ancestor.place)) if ancestor else self.attempt(name).scaffold()

    def ancestors(self) -> list[Version]:
        """The versions that the parent comes from, the nearest first, as far as they are known here."""
        if self._ancestors is None:
            known = lineage.read()
            parent = self.evidence.parent
            found = known.ancestors(parent.identity, parent.schema.scaffold.parent)
            self._ancestors = [known.versions[identity] for identity in found if identity in known.versions]
        return self._ancestors

    def edited(self) -> None:
        """The candidate is no longer what was checked."""
        self.checked = None

    def _ancestor(self, name: str) -> Version | None:
        if len(name) < SHORT or "." in name:
            return None
        return next((version for version in self.ancestors() if version.identity.startswith(name)), None)

    def _listed(self) -> str:
        numbers = ", ".join(attempt.number for attempt in self.evidence.attempts)
        return f"There are {PARENT}, and the attempts {numbers}." if numbers else f"There is only {PARENT}."


def without_notes(loaded: Scaffold) -> Scaffold:
    """A scaffold without its notes: they tell what was measured, which may have been on seeds that are held out."""
    return replace(loaded, sources=_without_notes(loaded.sources))


def _without_notes(sources: Mapping[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in sources.items() if path != NOTES}
