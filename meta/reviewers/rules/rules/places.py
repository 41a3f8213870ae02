"""A log of what every step showed becomes a map of places and a short log of the newest steps, both in every prompt."""

from __future__ import annotations

from dataclasses import dataclass

from automem.scaffold import Scaffold
from meta.reviewers.rules import moment, room
from meta.reviewers.rules.draft import Draft
from meta.reviewers.rules.findings import FileFigures, Measured
from meta.reviewers.rules.proposal import Parameters, Proposal, Rule, Tried
from meta.reviewers.rules.rules import pins, window
from meta.reviewers.rules.thresholds import thresholds

NAME = "log-becomes-map"
PLACES, BLOCKS, STEPS, STATE = "places.txt", "places_{block}.txt", "steps.txt", "state.txt"


class LogBecomesMap(Rule):
    """Where a long log is asked all the time, and its lines say the same of the same places."""

    def propose(self, measured: Measured, scaffold: Scaffold, tried: Tried) -> Proposal | None:
        file = self._log(measured, scaffold)
        if file is None or any(f.kind == "map" and "{what}" in f.entry for f in scaffold.schema.files):
            return None
        parameters = tried.first_new(NAME, thresholds()["places"]["choices"])
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
            _reason(measured, file, limit),
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


def _change(file: FileFigures, parameters: Parameters) -> str:
    lines = parameters["lines"]
    if parameters["map"] == "none":
        return f"{file.name} becomes a short log of the newest {lines} steps, shown in every prompt"
    kind = "in blocks" if parameters["map"] == "blocks" else "shown whole"
    return f"{file.name} becomes a map keyed by place, {kind}, and a short log of the newest {lines} steps"


def _reason(measured: Measured, file: FileFigures, limit: int) -> str:
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
    said.append(
        f"{file.placed:.0%} of its lines name places or directions: what is where can be said once a place, and the "
        "newest steps in a line each."
    )
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
        steps = self._short_log(draft)
        if parameters["map"] == "none":
            draft.tell("How memory is kept", _SHORT.format(steps=steps))
            return
        if parameters["map"] == "blocks":
            name = draft.free_name(BLOCKS)
            draft.add_file(
                name,
                kind="map",
                key=self.key,
                entry="{what}",
                block=parameters["block"],
                describe="what is where, a line a place; one file a block of places",
            )
        else:
            name = draft.free_name(PLACES)
            draft.add_file(
                name, kind="map", key=self.key, entry="{what}", pin=True, describe="what is where, a line a place"
            )
            draft.limit("result_chars", self.room)
            draft.add_part("prune", files={name: int(self.room * thresholds()["places"]["map_chars"])})
        draft.enable("UPSERT", "DELETE")
        draft.tell("How memory is kept", _MAP.format(steps=steps, places=name, key=self.key))

    def _short_log(self, draft: Draft) -> str:
        """Let the log keep the newest steps, in short, and show it; its name from now on."""
        steps = _rename(draft, self.log)
        draft.set_file(
            steps,
            describe=window.describe(self.lines),
            entry=self.entry,
            max_lines=self.lines,
            pin=True,
            changes=True,
        )
        if self.lasting:
            draft.add_file(
                draft.free_name(STATE),
                kind="note",
                entry=self.lasting,
                pin=True,
                changes=True,
                describe="what stays as it is for many steps, in one line; written anew when it changes",
            )
        # What is shown whole need be neither counted nor read once more.
        draft.disable("COUNT", "TAIL", *(["SEARCH"] if self.vain else []))
        pins.pin(draft, self.pinned)
        return steps


def _rename(draft: Draft, log: str) -> str:
    """Call the log what it now is, unless code knows it by its name."""
    if draft.in_hooks(log):
        return log
    name = draft.free_name(STEPS)
    draft.rename_file(log, name)
    return name


_SHORT = """
{steps} holds the newest steps only and is shown to you at every step: add one short line a step, and do not read it.
Say nothing in it that the observation will show again.
"""

_MAP = """
{places} is a map: UPSERT sets what is at a place, replacing what stood there; the key is the place, such as {key}.
Write only what is new or has changed, one place a line: things to come back to, ways that are closed, dangers.
DELETE what is no longer true. {steps} holds the newest steps only: one short line a step, nothing that a map says.
What is shown to you at every step need not be read.
"""
