"""A file whose lines speak of different things becomes several, one a topic."""

from __future__ import annotations

from automem.scaffold import Scaffold
from meta.reviewers.rules.draft import Draft, described
from meta.reviewers.rules.findings import FileFigures, Measured
from meta.reviewers.rules.proposal import Proposal, Tried
from meta.reviewers.rules.thresholds import thresholds

NAME = "split-topics"


class Topics:
    """Where one file holds lines of several topics, each line of one of them."""

    def propose(self, measured: Measured, scaffold: Scaffold, tried: Tried) -> Proposal | None:
        limits = thresholds()["split"]
        for file in sorted(measured.files.values(), key=lambda file: -file.lines):
            topics = _mixed(file)
            enough = file.lines >= limits["lines"] and len(topics) >= 2 and file.planned is not None
            parameters = {"file": file.name, "topics": topics}
            if enough and (NAME, parameters) not in tried:
                return self._proposal(file, topics, limits["expected"])
        return None

    def _proposal(self, file: FileFigures, topics: list[str], expected: float) -> Proposal:
        said = described([f"{file.topics[topic]:.0%} of {topic}" for topic in topics])

        def edit(draft: Draft) -> None:
            names = {topic: draft.free_name(f"{topic}.txt") for topic in topics}
            told = thresholds()["describe"]
            for topic, name in names.items():
                draft.add_file(name, kind="log", describe=told[topic], max_lines=thresholds()["split"]["max_lines"])
            draft.set_file(file.name, describe="what belongs in none of the other files")
            draft.tell(
                "What belongs where",
                "\n".join(f"- {name}: {told[topic]}" for topic, name in names.items())
                + f"\n- {file.name}: nothing that belongs in one of these.",
            )

        return Proposal(
            NAME,
            {"file": file.name, "topics": topics},
            f"what {file.name} says of {described(topics)} gets a file of its own",
            f"{file.name} mixes topics: of its {file.lines} lines, {said} speak of one.",
            expected,
            edit,
        )


def _mixed(file: FileFigures) -> list[str]:
    """Topics that some lines speak of and most do not; a file whose entry says all at once mixes nothing."""
    limits = thresholds()["split"]
    if file.follows >= limits["follows"]:
        return []
    return [topic for topic, share in file.topics.items() if limits["least"] <= share <= limits["most"]]
