"""`automem rerun`: a stored run is played again from its folder alone, and what came of it is told."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import tomlkit

from automem import cli_rerun, evaluate, runs, trace
from automem.errors import UserError
from automem.models.fixed import Fixed
from automem.models.protocol import Message, Model, ModelUnavailable
from automem.runs import PlayedModel
from specialist import play
from tests.commands import caller
from tests.hook_episodes import write_child
from tests.specialist.serve.adapters import an_adapter
from tests.traces import a_run

Command = Callable[..., tuple[int, str]]
Rule = Callable[[Sequence[Message]], str]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of `scripted`, 2 seeds of 40 steps, to be copied."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOMEM_RUNS", str(tmp_path_factory.mktemp("runs")))
        return a_run("first", seeds="42..43", steps=40).folder


@pytest.fixture
def automem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], first: Path) -> Command:
    """Run a command in this process, in a folder that holds the run; returns exit code and everything printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    for name in ("AUTOMEM_RUNS", "AUTOMEM_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    shutil.copytree(first, tmp_path / "runs" / "first")

    call = caller(monkeypatch, capfd)

    def run(*arguments: str) -> tuple[int, str]:
        code, out, err = call(*arguments)
        return code, out + err

    return run


@pytest.fixture
def played_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[Rule], None]:
    """Let a rule answer in place of any model."""

    def use(rule: Rule) -> None:
        def make(*_: object, **__: object) -> Model:
            return Fixed(rule)

        monkeypatch.setattr(evaluate, "make_model", make)

    return use


def going(asked: Sequence[Message]) -> str:
    """Writes a note, then moves."""
    if "# LOG" in asked[1]["content"]:
        return "<|APPEND|>map_notes.txt|grass<|END|><|DONE|><|END|>"
    return "<|ACTION|>Move West<|END|>"


def failing_at(call: int, failure: BaseException, rule: Rule = going) -> Rule:
    """The rule, until a call fails."""
    calls = itertools.count()

    def answer(asked: Sequence[Message]) -> str:
        if next(calls) == call:
            raise failure
        return rule(asked)

    return answer


def edit(path: Path, change: Callable[[tomlkit.TOMLDocument], None]) -> None:
    document = tomlkit.parse(path.read_text())
    change(document)
    path.write_text(tomlkit.dumps(document))


def test_a_run_of_scripted_comes_out_the_same(automem: Command, tmp_path: Path) -> None:
    code, said = automem("rerun", "first")
    assert code == 0
    assert "= Crafter 42: the same, 40 steps" in said and "it came out the same: all of 2 episodes" in said
    then, now = runs.load("first").config, runs.load("first-rerun").config
    assert now.differences(then) == [] and now.scaffolds == then.scaffolds
    assert (tmp_path / "runs" / "first-rerun" / "scaffolds" / "crafter" / "v0" / "scaffold.toml").is_file()
    # Nothing that was played is played again, and what is there is not written over.
    assert automem("rerun", "first", "--resume")[0] == 0
    code, said = automem("rerun", "first")
    assert code == 2 and "--resume" in said


def test_the_stored_copy_is_played_wherever_the_run_lies(automem: Command, tmp_path: Path) -> None:
    (tmp_path / "runs" / "bench").mkdir()
    (tmp_path / "runs" / "first").rename(tmp_path / "runs" / "bench" / "label")
    # Another scaffold goes by the same name here, and another sandbox is configured.
    shutil.copytree(tmp_path / "runs" / "bench" / "label" / "scaffolds", tmp_path / "scaffolds")
    (tmp_path / "scaffolds" / "crafter" / "v0" / "prompts" / "plan.j2").write_text("nothing")
    (tmp_path / "automem.toml").write_text("[sandbox]\ncall_seconds = 5.0\n")
    code, said = automem("rerun", "bench/label", "--seeds", "43")
    assert code == 0 and "Crafter 43: the same" in said and "Crafter 42" not in said
    now = runs.load("bench-label-rerun").config
    assert now.tasks[0].seeds == (43,) and now.sandbox.call_seconds == 2.0


def test_a_part_of_a_run(automem: Command) -> None:
    code, said = automem("rerun", "first", "--episodes", "1", "--name", "part", "--json")
    assert code == 0
    found = json.loads(said[said.index("{\n") : said.rindex("}") + 1])
    assert found["same"] and [e["seed"] for e in found["episodes"]] == [42] and found["now"] == "part"
    code, said = automem("rerun", "first", "--seeds", "42,99", "--name", "more")
    assert code == 2 and "seed 99" in said and not runs.exists("more")


def test_a_model_that_answers_otherwise_is_told_as_the_models_doing(automem: Command, played_by: Callable) -> None:
    played_by(going)
    assert automem("eval", "crafter", "--model", "openai/x", "--seeds", "1..2", "--steps", "12", "--run", "llm")[0] == 0
    assert automem("rerun", "llm", "--name", "same")[0] == 0
    calls = itertools.count()
    played_by(lambda asked: going(asked) + (" Now." if next(calls) == 10 else ""))
    code, said = automem("rerun", "llm", "--workers", "1", "--json")
    found = json.loads(said[said.index("{\n") : said.rindex("}") + 1])
    assert code == 1 and not found["same"]
    # Step 0 has a call of PLAN alone, every later one two.
    difference = found["episodes"][0]["difference"]
    assert (difference["step"], difference["cause"], difference["phase"]) == (5, "reply", "plan")
    assert difference["now"].endswith(" Now.") and difference["then"] == "<|ACTION|>Move West<|END|>"
    assert "openai/x answers the same messages otherwise" in difference["why"][0]
    assert found["episodes"][1]["status"] == "same"
    code, said = automem("rerun", "llm", "--against", "llm-rerun")
    assert code == 1
    assert (
        "≠ Crafter 1: differs at step 5: reply in PLAN, turn 0" in said and "1 of 2 episodes came out the same" in said
    )
    assert "automem trace steps llm-rerun --seed 1 --from 5 --to 5 --full" in said
    assert automem("trace", "steps", "llm-rerun", "--seed", "1", "--from", "5", "--to", "5", "--full")[0] == 0


@pytest.mark.parametrize(
    ("method", "cause", "told"),
    [
        ('def observe(self, step): return {"luck": str(id(self))}', "prompt", "hooks may show texts"),
        ('def maintain(self, step, memory): return [append("map_notes.txt", str(id(self)))]', "hook", "may depend on"),
    ],
)
def test_hooks_that_answer_otherwise_each_time_are_found_out(
    automem: Command, tmp_path: Path, method: str, cause: str, told: str
) -> None:
    code = f"from automem.hooks import append\n\nclass Hooks:\n    {method}\n"
    write_child(tmp_path / "dice", code, shows=["luck"])
    shutil.rmtree(tmp_path / "runs")  # it played another version of the same name
    asked = ("eval", "crafter", "--scaffold", "dice", "--model", "scripted", "--seeds", "1", "--steps", "3")
    assert automem(*asked, "--run", "dice")[0] == 0
    code_, said = automem("rerun", "dice")
    assert code_ == 1 and "differs at step 0" in said and told in said
    code_, said = automem("rerun", "dice", "--against", "dice-rerun", "--json")
    assert json.loads(said)["episodes"][0]["difference"]["cause"] == cause


def test_a_rerun_whose_model_went_away_goes_on_later(automem: Command, played_by: Callable) -> None:
    played_by(going)
    automem("eval", "crafter", "--model", "openai/x", "--seeds", "1..2", "--steps", "12", "--run", "llm")
    played_by(failing_at(9, ModelUnavailable("the server is gone")))
    code, said = automem("rerun", "llm", "--workers", "1")
    assert code == 1
    assert "? Crafter 1: the same for 5 steps" in said and "now: not finished: the server is gone" in said
    played_by(going)
    code, said = automem("rerun", "llm", "--resume")
    assert code == 0 and "it came out the same" in said


def test_a_rerun_that_was_interrupted_says_how_to_go_on(automem: Command, played_by: Callable) -> None:
    played_by(going)
    automem("eval", "crafter", "--model", "openai/x", "--seeds", "1", "--steps", "12", "--run", "llm")
    played_by(failing_at(9, KeyboardInterrupt()))
    code, said = automem("rerun", "llm")
    assert code == 130 and "go on with: automem rerun llm --run llm-rerun --resume" in said
    played_by(going)
    code, said = automem("rerun", "llm", "--run", "llm-rerun", "--resume")
    assert code == 0 and "it came out the same" in said


def test_other_versions_are_warned_of_before_anything_is_played(automem: Command, tmp_path: Path) -> None:
    path = tmp_path / "runs" / "first" / "run.toml"
    edit(path, lambda toml: toml["versions"].update(crafter="0.0.1", automem="0.0.2"))  # type: ignore[union-attr]
    code, said = automem("rerun", "first", "--seeds", "42")
    assert code == 0
    assert "crafter 0.0.1 then, " in said and "automem 0.0.2 then, " in said
    assert said.index("! other versions are installed") < said.index("run first-rerun: 1 episodes")


def test_what_is_not_finished_is_compared_as_far_as_it_goes(automem: Command, tmp_path: Path) -> None:
    episodes = tmp_path / "runs" / "first" / "episodes" / "Crafter"
    (episodes / "seed-42" / "episode.json").unlink()
    code, said = automem("rerun", "first")
    assert code == 1 and "not finished in first" in said
    assert "? Crafter 42: the same for 40 steps" in said and "then: not finished" in said
    assert "1 of 2 episodes came out the same, 1 could not be compared" in said
    shutil.rmtree(episodes / "seed-42")
    code, said = automem("rerun", "first", "--name", "second")
    assert code == 0 and "1 episodes were never begun in first" in said
    shutil.rmtree(episodes / "seed-43")
    code, said = automem("rerun", "first", "--name", "third")
    assert code == 2 and "no finished episode" in said and not runs.exists("third")


SPECIALIST = {"model": {"name": "smollm2+specialist-000000000000"}, "adapter": "/gone/adapter", "identity": "0" * 64}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda toml: toml["model"].update(name="gpt"), "gpt"),
        (lambda toml: toml["tasks"][0].update(task="Nowhere-v0"), "no task is called 'Nowhere-v0'"),
        (lambda toml: toml["tasks"][0].update(facts={"levels": "official"}), "other levels"),
        (lambda toml: toml.update(specialist=SPECIALIST), "/gone/adapter: the adapter of the run's specialist"),
        (lambda toml: toml["scaffolds"]["crafter"].update(identity="0" * 64), "was changed since it was played"),
        (lambda toml: toml["scaffolds"]["crafter"].update(folder="scaffolds/gone"), "copy of its scaffold is gone"),
        (lambda toml: toml.pop("model"), "not a run of this version"),
    ],
)
def test_what_is_gone_is_told_in_one_message_and_nothing_is_made(
    automem: Command, tmp_path: Path, change: Callable, says: str
) -> None:
    edit(tmp_path / "runs" / "first" / "run.toml", change)
    code, said = automem("rerun", "first")
    assert code == 2 and says in said and "Traceback" not in said
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["first"]


def test_a_run_from_elsewhere_sends_nothing_to_its_server_unasked(
    automem: Command, tmp_path: Path, played_by: Callable
) -> None:
    played_by(going)
    automem("eval", "crafter", "--model", "openai/x", "--seeds", "1", "--steps", "3", "--run", "llm")
    edit(tmp_path / "runs" / "llm" / "run.toml", lambda toml: toml["model"].update(api_base="http://far.away/v1"))  # type: ignore[union-attr]
    assert automem("rerun", "llm")[0] == 0
    shutil.move(tmp_path / "runs" / "llm", tmp_path / "theirs")
    code, said = automem("rerun", "theirs", "--name", "mine")
    assert code == 2 and "http://far.away/v1" in said and not runs.exists("mine")
    assert automem("rerun", "theirs", "--name", "mine", "--api-base", "http://far.away/v1")[0] == 0
    assert runs.load("mine").config.model.api_base == "http://far.away/v1"


def test_two_runs_are_compared_without_playing(automem: Command, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "runs" / "first", tmp_path / "theirs")
    code, said = automem("rerun", "first", "--against", "theirs")
    assert code == 0 and "it came out the same: all of 2 episodes" in said
    assert not runs.exists("first-rerun")
    edit(tmp_path / "theirs" / "run.toml", lambda toml: toml["tasks"][0].update(seeds=[42, 44]))  # type: ignore[index, union-attr]
    code, said = automem("rerun", "first", "--against", "theirs")
    assert (
        code == 1
        and "now: the run has no such episode" in said
        and "left out, as first has no such episodes: 1 of theirs" in said
    )
    code, said = automem("rerun", "first", "--against", "theirs", "--seeds", "42")
    assert code == 0
    code, said = automem("rerun", "first", "--against", "theirs", "--name", "x", "--workers", "2")
    assert code == 2 and "leave out --name, --workers" in said
    code, said = automem("rerun", "first", "--against", "nope")
    assert code == 2 and "no run 'nope'" in said


def test_a_specialist_of_a_run_is_found_again_or_told_to_be_gone(tmp_path: Path) -> None:
    asked = PlayedModel(name=str(tmp_path / "trained"), temperature=0.3, max_tokens=50)
    an_adapter(tmp_path / "trained")
    chosen = play.choose(asked, base="hosted_vllm/base", consult_turns=2)
    found = cli_rerun._specialist(chosen.played, None, "http://127.0.0.1:9/v1")
    assert (found.played.decisive, found.base) == (chosen.played.decisive, chosen.base)
    assert found.played.model.api_base == "http://127.0.0.1:9/v1"
    # Only a server of the person's own has an address, so one in the environment is not meant for ours.
    ours = play.choose(asked).played
    assert [cli_rerun._served_by_us(one) for one in (chosen.played, ours)] == [False, True]
    (tmp_path / "trained").rename(tmp_path / "moved")
    with pytest.raises(UserError, match="is not there any more"):
        cli_rerun._specialist(chosen.played, None, "")
    assert cli_rerun._specialist(chosen.played, tmp_path / "moved", "").played.decisive == chosen.played.decisive
    an_adapter(tmp_path / "trained", weights=b"others")
    with pytest.raises(UserError, match="holds another adapter"):
        cli_rerun._specialist(chosen.played, None, "")


def test_a_run_with_a_specialist_comes_out_the_same(automem: Command) -> None:
    both = ("--model", "scripted", "--specialist", "scripted")
    assert automem("eval", "crafter", *both, "--seeds", "1", "--steps", "8", "--run", "two")[0] == 0
    code, said = automem("rerun", "two")
    assert code == 0 and "it came out the same" in said
    assert runs.load("two-rerun").config.specialist == runs.load("two").config.specialist


def test_a_run_from_elsewhere_writes_into_the_new_run_alone(automem: Command, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "first"
    shutil.copytree(run / "scaffolds" / "crafter" / "v0", run / "copy")
    edit(run / "run.toml", lambda toml: toml["scaffolds"]["crafter"].update(folder="../first/copy", ref="../../x"))  # type: ignore[index, union-attr]
    assert automem("rerun", "first", "--seeds", "42")[0] == 0
    played = runs.load("first-rerun").config.scaffolds["crafter"]
    assert (played.ref, played.folder) == ("crafter/v0", "scaffolds/crafter/v0")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs"]


@pytest.mark.parametrize("agent", ["random", "naive", "cot"])
def test_runs_of_agents_without_a_memory_folder(automem: Command, played_by: Callable, agent: str) -> None:
    played_by(lambda asked: "<|ACTION|>Move West<|END|>")
    asked = ("eval", "crafter", "--agent", agent, "--model", "openai/x", "--seeds", "1", "--steps", "8")
    assert automem(*asked, "--run", "simple")[0] == 0
    code, said = automem("rerun", "simple")
    assert code == 0 and "it came out the same" in said
    assert runs.load("simple-rerun").config.agent == agent


def test_an_agent_that_builds_another_conversation_is_told(automem: Command, played_by: Callable) -> None:
    played_by(lambda asked: "Move West")
    asked = ("eval", "crafter", "--agent", "naive", "--model", "openai/x", "--seeds", "1", "--steps", "8")
    automem(*asked, "--run", "simple")
    automem("rerun", "simple")
    path = Path("runs/simple-rerun/episodes/Crafter/seed-1/steps.jsonl.zst")
    records, _ = trace.read(path)
    path.unlink()
    writer = trace.TraceWriter(path)
    for record in records:
        (turn,) = record.plan
        assert record.step == 0 or turn.context
        if record.step == 5 and turn.context:
            first, *rest = turn.context
            changed = replace(turn, context=({**first, "content": "Forget."}, *rest))
            record = replace(record, plan=(changed,))
        writer.append(record)
    writer.close()
    code, said = automem("rerun", "simple", "--against", "simple-rerun")
    assert code == 1 and "differs at step 5: message 1 before the last in PLAN, turn 0" in said and "Forget." in said


def test_an_agent_that_is_not_there_any_more_is_told(automem: Command, tmp_path: Path) -> None:
    edit(tmp_path / "runs" / "first" / "run.toml", lambda toml: toml.update(agent="theirs"))
    code, said = automem("rerun", "first")
    assert code == 2 and "no agent 'theirs'" in said and not runs.exists("first-rerun")
