"""A whole review over HTTP, from reading traces to the revision, and everything that goes wrong on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from automem import scaffold
from tests.meta.reviewers.llm import setting
from tests.meta.reviewers.llm.setting import Script, calling, finish, structural
from tests.models.fake_openai import fake_openai


def test_it_reads_edits_is_refused_corrects_and_finishes(loop: Path) -> None:
    at = setting.desk(loop, smoke=True)
    script = Script(
        [
            calling(("run_stats", {}), ("read_steps", {"seed": 3, "start": 5, "count": 2}), text="I look."),
            calling(("sql", {"query": "SELECT count(*) AS n FROM steps"}), ("memory_at", {"seed": 3, "step": 9})),
            calling(("write_file", {"path": "prompts/log.j2", "text": "{{ nonsense }}"}), ("check", {})),
            calling(finish()),
            calling(("restore_file", {"path": "prompts/log.j2"}), structural()),
            calling(("check", {}), finish()),
        ]
    )
    with fake_openai(script) as fake:
        revision = setting.review(fake.base, setting.evidence(loop), at)

    assert revision.description == "Places in a map by coordinate"
    assert revision.analysis == setting.GOOD_ANALYSIS
    assert (revision.spent.turns, revision.spent.prompt_tokens, revision.spent.completion_tokens) == (6, 600, 120)
    made = scaffold.load(str(at.candidate))
    assert made.schema.limits.search_results == 20
    assert made.schema.scaffold.version == "candidate"

    system, opening = (message["content"] for message in script.asked[0]["messages"][:2])
    assert "The model decides" in system and "Outcome before record" in system and "structural" in system
    assert "A map instead of a log" in opening and "seed 3: progression" in opening
    assert {tool["function"]["name"] for tool in script.asked[0]["tools"]} >= {"read_steps", "check", "finish"}
    assert "=== step 5" in script.told(1) and "=== step 7" not in script.told(1)
    assert "\n80\n" in script.told(2)
    assert "prompts/log.j2:1: error" in script.told(3)
    assert "not finished" in script.told(4) and "prompts/log.j2:1: error" in script.told(4)
    assert "as in the parent again" in script.told(5)
