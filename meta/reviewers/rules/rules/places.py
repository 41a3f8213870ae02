"""A log of what every step showed becomes a map of places and a short log of the newest steps, both in every prompt."""

from __future__ import annotations

from automem.scaffold import Scaffold
from meta.reviewers.rules import moment
from meta.reviewers.rules.draft import Draft
from meta.reviewers.rules.findings import FileFigures, Measured
from meta.reviewers.rules.proposal import Parameters, Proposal, Rule, Tried
from meta.reviewers.rules.thresholds import thresholds

NAME = "log-becomes-map"
PLACES, STEPS = "places.txt", "steps.txt"


class LogBecomesMap(Rule):
    """Where a long log is asked all the time, and its lines say the same of the same places."""

    def propose(self, measured: Measured, scaffold: Scaffold, tried: Tried) -> Proposal | None:
        file = self._log(measured, scaffold)
        if file is None or any(f.kind == "map" and "{what}" in f.entry for f in scaffold.schema.files):
            return None
        parameters = tried.first_new(NAME, thresholds()["places"]["choices"])
        if parameters is None:
            return None
        limit = scaffold.schema.limits.result_chars
        entry = moment.entry(measured, file)

        def edit(draft: Draft) -> None:
            _edit(draft, file.name, entry, parameters, limit, measured)

        return Proposal(
            NAME,
            parameters,
            _change(file, parameters),
            _reason(measured, file, limit),
            thresholds()["places"]["expected"],
            edit,
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
        said.append(f"{number:.1f} searches a step were made of it, and {share:.0%} of them found no line.")
    said.append(
        f"{file.placed:.0%} of its lines name places or directions: what is where can be said once a place, and the "
        "newest steps in a line each."
    )
    return " ".join(said)


def _edit(draft: Draft, log: str, entry: str, parameters: Parameters, limit: int, measured: Measured) -> None:
    steps = _rename(draft, log)
    draft.set_file(
        steps,
        describe=f"the newest {parameters['lines']} steps, a line each; older lines drop out",
        entry=entry,
        max_lines=parameters["lines"],
        pin=True,
    )
    draft.show_pinned()
    if parameters["map"] == "none":
        draft.tell("How memory is kept", _SHORT.format(steps=steps))
        return
    key = "{x},{y} level {level}" if measured.shows.get("level") else "{x},{y}"
    if parameters["map"] == "blocks":
        name = "places_{block}.txt"
        draft.add_file(
            name,
            kind="map",
            key=key,
            entry="{what}",
            block=parameters["block"],
            describe="what is where, a line a place; one file a block of places",
        )
    else:
        name = draft.free_name(PLACES)
        draft.add_file(name, kind="map", key=key, entry="{what}", pin=True, describe="what is where, a line a place")
        draft.add_part("prune", files={name: int(limit * thresholds()["places"]["map_chars"])})
    draft.enable("UPSERT", "DELETE")
    draft.tell("How memory is kept", _MAP.format(steps=steps, places=name, key=key))


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
