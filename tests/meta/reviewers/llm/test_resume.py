"""A review that was killed: nothing is paid twice, and the candidate comes out as if nothing had happened."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from automem import scaffold
from meta.reviewer import ReviewerUnavailable
from tests.meta.reviewers.llm import setting
from tests.meta.reviewers.llm.setting import Script, calling, finish, review, structural
from tests.models.fake_openai import Answer, fake_openai, refusal

ROOT = Path(__file__).resolve().parents[4]

REPLIES = [
    calling(("read_steps", {"seed": 3}), ("write_file", {"path": "files/seen.txt", "text": "nothing yet\n"})),
    calling(structural()),
    calling(("check", {})),
    calling(("replace_in_file", {"path": "files/seen.txt", "old": "nothing", "new": "no place"})),
    calling(finish()),
]

CHILD = """
import asyncio, pathlib, sys
from tests.meta.reviewers.llm import setting
folder, base, stops = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]

class Stops(setting.Checked):
    async def __call__(self):
        if stops == "check":
            print("checking", flush=True)
            await asyncio.Event().wait()
        return await super().__call__()

setting.Checked = Stops
setting.review(base, setting.evidence(folder), setting.desk(folder))
"""


@pytest.mark.parametrize("stops", ["reply", "check"])
def test_it_goes_on_after_a_kill_as_if_nothing_had_happened(loop: Path, stops: str) -> None:
    never, arrived = threading.Event(), threading.Event()

    def hangs(request: dict) -> Answer:
        answer = script(request)
        if len(script.asked) > 3:
            arrived.set()
            never.wait(60)
        return answer

    script = Script(REPLIES)
    with fake_openai(hangs) as fake:
        command = [sys.executable, "-c", CHILD, str(loop), fake.base, stops]
        child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        try:
            if stops == "reply":
                while not arrived.wait(0.2):
                    assert child.poll() is None, "the review ended before it was killed"
            else:
                assert child.stdout is not None and child.stdout.readline() == "checking\n"
        finally:
            child.kill()
            child.communicate()
            never.set()
    paid = 3
    assert len(script.asked) == paid + (stops == "reply")
    at = setting.desk(loop, fresh=False)
    with (at.folder / "transcript.jsonl").open("ab") as file:
        file.write(b'{"kind": "reply", "te')  # as a kill in the middle of writing leaves it

    rest = Script(REPLIES)
    with fake_openai(rest) as fake:
        revision = review(fake.base, setting.evidence(loop), at)
    assert len(rest.asked) == len(REPLIES) - paid
    assert rest.asked[0]["messages"] == _conversation(rest)
    assert revision.spent.turns == len(REPLIES)
    assert (at.candidate / "files/seen.txt").read_text() == "no place yet\n"
    assert scaffold.load(str(at.candidate)).schema.limits.search_results == 20
    assert setting.records(at)[-1] == {"kind": "ended", "how": "finished"}


def _conversation(script: Script) -> list:
    """The first request's messages, which must be the beginning of the last one's."""
    first, last = script.asked[0]["messages"], script.asked[-1]["messages"]
    return last[: len(first)]


def test_a_finished_review_is_read_back_without_asking(loop: Path) -> None:
    at = setting.desk(loop)
    with fake_openai(Script(REPLIES)) as fake:
        revision = review(fake.base, setting.evidence(loop), at)
    identity = scaffold.load(str(at.candidate)).identity
    with fake_openai(refusal(500, "must not be asked")) as fake:
        again = review(fake.base, setting.evidence(loop), setting.desk(loop))
    assert not fake.requests
    assert (again.description, again.analysis) == (revision.description, revision.analysis)
    assert again.spent.turns == revision.spent.turns
    assert scaffold.load(str(at.candidate)).identity == identity


def test_where_the_recorded_conversation_is_another_one_it_goes_on_from_there(loop: Path) -> None:
    at = setting.desk(loop)
    with fake_openai(Script(REPLIES)) as fake:
        review(fake.base, setting.evidence(loop), at)
    path = at.folder / "transcript.jsonl"
    lines = path.read_text().splitlines()
    second = next(i for i, line in enumerate(lines) if '"answers"' in line[:20]) + 1
    reply = json.loads(lines[second])
    assert reply["kind"] == "reply"
    reply["sent"] = "another conversation"
    lines[second] = json.dumps(reply)
    path.write_text("\n".join(lines) + "\n")

    rest = Script(REPLIES)
    with fake_openai(rest) as fake:
        revision = review(fake.base, setting.evidence(loop), setting.desk(loop))
    assert len(rest.asked) == len(REPLIES) - 1
    assert revision.spent.turns == 2 * len(REPLIES) - 1  # all that was paid for
    left = [record for record in setting.records(at) if record["kind"] == "left"]
    assert left == [{"kind": "left", "keep": 3}]

    with fake_openai(refusal(500, "must not be asked")) as fake:
        review(fake.base, setting.evidence(loop), setting.desk(loop))
    assert not fake.requests


def test_a_transcript_of_another_attempt_is_not_used(loop: Path) -> None:
    with fake_openai(Script(REPLIES)) as fake:
        review(fake.base, setting.evidence(loop), setting.desk(loop))
    given = setting.evidence(loop)
    other = given.__class__("3.1.0", given.parent, given.run, given.attempts)
    script = Script(REPLIES)
    with fake_openai(script) as fake:
        review(fake.base, other, setting.desk(loop))
    assert len(script.asked) == len(REPLIES)


def test_a_damaged_transcript_is_reported_and_not_overwritten(loop: Path) -> None:
    at = setting.desk(loop)
    with fake_openai(Script(REPLIES)) as fake:
        review(fake.base, setting.evidence(loop), at)
    path = at.folder / "transcript.jsonl"
    damaged = path.read_bytes().replace(b'{"kind": "answers"', b'{"kind": answers', 1)
    path.write_bytes(damaged)
    with fake_openai(Script(REPLIES)) as fake, pytest.raises(ReviewerUnavailable, match=r"transcript\.jsonl:3: "):
        review(fake.base, setting.evidence(loop), at)
    assert path.read_bytes() == damaged
