"""A log of what every step showed becomes a map of places, and beside it the newest steps in short, or one line."""

from __future__ import annotations

from dataclasses import dataclass

from automem.scaffold import Scaffold
from meta.reviewers.rules import moment, room
from meta.reviewers.rules.draft import Draft
from meta.reviewers.rules.findings import FileFigures, Measured
from meta.reviewers.rules.proposal import Parameters, Proposal, Tried
from meta.reviewers.rules.rules import pins, window
from meta.reviewers.rules.thresholds import thresholds

NAME = "log-becomes-map"
PLACES, BLOCKS, STEPS, STATE = "places.txt", "places_{block}.txt", "steps.txt", "state.txt"


class LogBecomesMap:
    """Where a long log is asked all the time, and its lines say the same of the same places."""

    def propose(self, measured: Measured, scaffold: Scaffold, tried: Tried) -> Proposal | None:
        file = self._log(measured, scaffold)
        if file is None or any(f.kind == "map" and "{what}" in f.entry for f in scaffold.schema.files):
            return None
        parameters = tried.first_new(NAME, _choices(file))
        if parameters is None:
            return None
        plan = _Plan(
            log=file.name,
            entry=moment.entry(measured, file),
            lasting=moment.lasting(measured),
            key="{x},{y} level {level}" if moment.can_fill("level", measured) else "{x},{y}",
            lines=parameters["lines"],
            room=room.in_prompts(measured, scaffold),
            vain=file.nothing >= thresholds()["places"]["vain"] * max(1, file.searches),
            pinned=[file.name for file in pins.worth_pinning(measured, scaffold)],
        )
        limit = scaffold.schema.limits.result_chars
        return Proposal(
            NAME,
            parameters,
            _change(file, parameters),
            _reason(measured, file, limit, parameters),
            thresholds()["places"]["expected"],
            lambda draft: plan.edit(draft, parameters),
        )

    def _log(self, measured: Measured, scaffold: Scaffold) -> FileFigures | None:
        """The log that this is about: of those that qualify, the largest."""
        limits = thresholds()["places"]
        most = limits["outgrown"] * scaffold.schema.limits.result_chars
        found = [
            file
            for file in measured.files.values()
            if file.planned is not None
            and file.planned.kind == "log"
            and file.planned.max_lines is None
            and file.read_steps >= limits["read_steps"]
            and file.end_bytes >= most
            and file.repeated >= limits["repeated"]
            and file.placed >= limits["placed"]
        ]
        return max(found, key=lambda file: file.end_bytes, default=None)


def _choices(file: FileFigures) -> list[Parameters]:
    """The parameters, the most promising first."""
    says_again = file.short_again is not None and file.short_again >= thresholds()["places"]["again"]
    return sorted(thresholds()["places"]["choices"], key=lambda choice: says_again and choice["lines"] > 0)


def _change(file: FileFigures, parameters: Parameters) -> str:
    lines = parameters["lines"]
    steps = f"a short log of the newest {lines} steps" if lines else "one line that says where things stand"
    if parameters["map"] == "none":
        return f"{file.name} becomes {steps}, shown in every prompt"
    kind = "in blocks" if parameters["map"] == "blocks" else "shown whole"
    return f"{file.name} becomes a map keyed by place, {kind}, and {steps}"


def _reason(measured: Measured, file: FileFigures, limit: int, parameters: Parameters) -> str:
    said = [
        f"{file.name} grew by {measured.per_step(file.added_bytes):.0f} bytes a step, {file.line_chars:.0f} characters "
        f"a line; {file.repeated:.0%} of what it was told it had been told before, and {file.duplicate_share:.0%} of "
        "the writes said nothing new."
    ]
    for name in moment.long_fields(file)[:1]:
        said.append(f"Most of a line is {{{name}}}, {file.fields[name].chars:.0f} characters.")
    if file.same_key >= 0.1:
        said.append(f"{file.same_key:.0%} of the lines tell of a place that an earlier line had.")
    said.append(
        f"It was asked at {file.read_steps:.0%} of the steps and ended at {file.end_bytes:.0f} bytes, of which a read "
        f"shows {limit}; {measured.per_step(file.truncated):.2f} results a step were cut."
    )
    if file.searches:
        share, number = file.nothing / file.searches, measured.per_step(file.searches)
        said.append(f"{number:.1f} searches and counts a step were made of it, and {share:.0%} of them found no line.")
    said.append(f"{file.placed:.0%} of its lines name places or directions: what is where can be said once a place.")
    if parameters["lines"]:
        said.append("The newest steps fit in a line each.")
    elif file.short_again is not None:
        said.append(f"{file.short_again:.0%} of the lines would say what an earlier line says, without what is seen.")
    return " ".join(said)


@dataclass(frozen=True)
class _Plan:
    """What is decided by the figures, whatever the parameters are.

    Attributes:
        log: the file that is replaced.
        entry: of the short log.
        lasting: an entry for what changes seldom; empty where there is nothing of the kind.
        key: of the map.
        lines: of the short log.
        room: characters that a prompt may show of the map.
        vain: most searches of the log found no line.
        pinned: other files that are worth pinning.
    """

    log: str
    entry: str
    lasting: str
    key: str
    lines: int
    room: int
    vain: bool
    pinned: list[str]

    def edit(self, draft: Draft, parameters: Parameters) -> None:
        """Make the change."""
        steps = self._short_log(draft) if self.lines else self._state(draft, self.log)
        # What is shown whole need be neither counted nor read once more.
        draft.disable("COUNT", "TAIL", *(["SEARCH"] if self.vain else []))
        pins.pin(draft, self.pinned)
        told = [_STEPS if self.lines else _LINE]
        name = self._map(draft, parameters)
        if name:
            draft.enable("UPSERT", "DELETE")
            told.insert(0, _MAP)
        draft.tell(
            "How memory is kept", "".join([*told, _SHOWN]).format(steps=steps, places=name, key=_example(self.key))
        )

    def _map(self, draft: Draft, parameters: Parameters) -> str:
        """Plan the map, if there is to be one; its name."""
        if parameters["map"] == "none":
            return ""
        if parameters["map"] == "blocks":
            name, told = draft.free_name(BLOCKS), "what is where, a line a place; one file a block of places"
            draft.add_file(name, kind="map", key=self.key, entry="{what}", block=parameters["block"], describe=told)
            return name
        name, told = draft.free_name(PLACES), "what is where, a line a place"
        draft.add_file(name, kind="map", key=self.key, entry="{what}", pin=True, describe=told)
        draft.limit("result_chars", self.room)
        draft.add_part("prune", files={name: int(self.room * thresholds()["places"]["map_chars"])})
        return name

    def _short_log(self, draft: Draft) -> str:
        """Let the log keep the newest steps, in short, and show it; its name from now on."""
        steps = _rename(draft, self.log, STEPS)
        told = window.describe(self.lines)
        draft.set_file(steps, describe=told, entry=self.entry, max_lines=self.lines, pin=True, changes=True)
        if self.lasting:
            told = "what stays as it is for many steps, in one line; written anew when it changes"
            name = draft.free_name(STATE)
            draft.add_file(name, kind="note", entry=self.lasting, pin=True, changes=True, describe=told)
        return steps

    def _state(self, draft: Draft, log: str) -> str:
        """Let one line that is written anew take the place of the log; its name."""
        state = _rename(draft, log, STATE)
        told = "where things stand and what is worth carrying on, in one line; written anew when it changes"
        entry = f"{self.entry}; {self.lasting}" if self.lasting else "{what}"
        draft.set_file(state, kind="note", entry=entry, describe=told, max_lines=None, pin=True, changes=True)
        return state


def _example(key: str) -> str:
    """A key with numbers in it."""
    return key.replace("{x}", "12").replace("{y}", "5").replace("{level}", "2")


def _rename(draft: Draft, log: str, wanted: str) -> str:
    """Call the log what it now is, unless code knows it by its name."""
    if draft.in_hooks(log):
        return log
    name = draft.free_name(wanted)
    draft.rename_file(log, name)
    return name


_MAP = """
{places} is a map: UPSERT sets what is at a place, replacing what stood there; the key is the place, such as {key}.
Write only what is new or has changed, one place a line: things to come back to, ways that are closed, dangers.
DELETE what is no longer true.
"""

_STEPS = """
{steps} holds the newest steps only: one short line a step, nothing that the next observation or a map says.
"""

_LINE = """
{steps} is one line: where you are, what you were about to do, what was tried in vain. WRITE it anew when that changes.
"""

_SHOWN = """
What is shown to you at every step need not be read.
"""
