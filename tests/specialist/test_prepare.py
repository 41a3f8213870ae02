"""From chosen phases to a dataset: against real traces, and with replies that are written for the case."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from automem import runs, scaffold
from automem.errors import UserError
from automem.records import Executed, Phase, Prompt, StepRecord, Turn
from automem.runs import PlayedModel, PlayedScaffold, Run, RunConfig
from automem.scaffold import Scaffold
from automem.trace import RunTrace
from specialist import example, prepare
from specialist.candidate import Candidate, Place, candidates, candidates_of
from specialist.example import Dataset, Example
from specialist.prepare import held_out_worlds
from specialist.recipe import DataRecipe
from specialist.verify import check_rules, check_verbatim
from tests import traces

A, B, DONE = "<|APPEND|>recent.txt|x{}<|END|>", "<|SEARCH|>*|tree{}<|END|>", "<|DONE|><|END|>"
ACTION = "<|ACTION|>Do<|END|>"
LENIENT = DataRecipe(minimum=1, held_out_share=0.3)


# Replies that are written for the case


@pytest.fixture(scope="module")
def loaded() -> Scaffold:
    return scaffold.load("crafter/v1")


@pytest.fixture
def place(tmp_path: Path, loaded: Scaffold) -> Path:
    """A folder of runs with two that were played with the scaffold, as far as their files say."""
    for name in ("one", "two"):
        a_run(tmp_path / "runs" / name, loaded)
    return tmp_path / "runs"


def a_run(folder: Path, played: Scaffold, game: str = "crafter") -> Run:
    there = PlayedScaffold(ref=played.ref, identity=played.identity, folder="scaffold")
    config = RunConfig(
        name=folder.name,
        target=game,
        created=runs.now(),
        model=PlayedModel(name="scripted"),
        scaffolds={game: there},
        tasks=(),
        versions={},
    )
    return runs.create(config, {game: played}, folder)


def turn(text: str, *, ok: bool = True) -> Turn:
    op = Executed("APPEND", ("recent.txt", "x"), (0, 1), "APPEND recent.txt | x", "said", ok=ok)
    prompt = Prompt("Notes.\n", "observation", "\nGo on.")
    return Turn("scripted", prompt, text, (op,), (), 1, 1, 0, None, 0.0)


def phase(
    *texts: str | Turn, seed: int = 1, step: int = 3, kind: Phase = "log", run: str = "one", seen: str = "grass"
) -> Candidate:
    turns = tuple(turn(text) if isinstance(text, str) else text for text in texts)
    nothing: tuple[Turn, ...] = ()
    record = StepRecord(
        step, seen, turns if kind == "log" else nothing, turns if kind == "plan" else nothing,
        "Do", "Do", 0, False, 0.0, 0.0, {}, False, False,
    )  # fmt: skip
    return Candidate(Place(run, "Crafter", seed, step, kind), turns, record, "be good", "Noop")


numbers = itertools.count()


def made(place: Path, loaded: Scaffold, chosen: Sequence[Candidate], recipe: DataRecipe = LENIENT) -> Dataset:
    folder = place.parent / f"data-{next(numbers)}"
    return prepare.prepare(chosen, recipe, folder, scaffold=loaded, game="crafter", runs=place)


def targets(dataset: Dataset) -> list[str]:
    return [one.target for one in dataset]


def test_every_turn_is_an_example_of_its_own(place: Path, loaded: Scaffold) -> None:
    first, second = f"Look.\n{B}\nI wait.", f"```\n{A}\n{DONE}\n```"
    data = made(place, loaded, [phase(first, second)])
    one, two = data.train()
    assert [one.target, two.target] == [f"Look.\n{B}", f"{A}\n{DONE}"]
    assert [message["role"] for message in one.prompt] == ["system", "user"]
    # The turns before the last message stay as the model wrote them.
    assert [message["role"] for message in two.prompt] == ["system", "user", "assistant", "user"]
    assert two.prompt[2]["content"] == first
    assert "=== STEP 3 | last action: Noop ===\ngrass" in two.prompt[1]["content"]
    assert (one.source.turn, two.source.turn) == (0, 1)
    assert "".join(second[a:b] for a, b in two.source.kept) == two.target
    check_rules(data)


def test_what_is_left_out_is_counted_with_its_reason(place: Path, loaded: Scaffold) -> None:
    chosen = [
        phase(A + DONE),
        phase("Nothing to say.", A + DONE, step=4),
        phase(A + DONE),
        phase(turn(A, ok=False), DONE, step=5),
        phase("".join(A.format(n) for n in range(60)) + DONE, step=6),
        phase(f"<|FOO|>x<|END|>{A}{DONE}", step=7),
    ]
    data = made(place, loaded, chosen)
    account = prepare.prepared(data.folder)
    assert account.dropped == {
        "no operation": 1,
        "the same as another": 1,
        "refused when it was run": 1,
        "more operations than a reply may have": 1,
        "refused operation": 1,
    }
    assert (account.phases, account.turns, account.examples) == (6, 8, {"log": 3, "plan": 0})
    assert account.operations == {"DONE": 3, "APPEND": 2}
    told = {(out.place, out.turn): out.detail for out in account.left_out}
    assert told["one/Crafter/seed-1/5/log", 0] == "APPEND recent.txt | x: said"
    assert "FOO" in told["one/Crafter/seed-1/7/log", 0]


def test_plan_keeps_what_was_read_before_the_action(place: Path, loaded: Scaffold) -> None:
    chosen = [phase(B, f"{B.format(2)}\n{ACTION}", B.format(3), kind="plan")]
    data = made(place, loaded, chosen)
    assert targets(data) == [B, B.format(2)]
    assert data.facts.consult_turns == 2
    assert prepare.prepared(data.folder).dropped == {"after an action": 1}


def test_operations_of_the_scaffold_are_known_by_phase(tmp_path: Path, loaded: Scaffold) -> None:
    sources = dict(loaded.sources)
    text = sources["scaffold.toml"].decode()
    sources["scaffold.toml"] = text.replace('name = "NEAR"\n', 'name = "NEAR"\nphase = "plan"\n').encode()
    scaffold.write_files(tmp_path / "scaffold", sources)
    own = scaffold.load(str(tmp_path / "scaffold"))
    a_run(tmp_path / "runs" / "one", own)
    near = "<|NEAR|>tree|3<|END|>"
    data = made(tmp_path / "runs", own, [phase(near, kind="plan"), phase(near + DONE), phase(DONE, step=4)])
    assert targets(data) == [near, DONE]
    assert "NEAR" in data.facts.operations["plan"] and "NEAR" not in data.facts.operations["log"]


def test_whole_worlds_are_held_out(place: Path, loaded: Scaffold) -> None:
    chosen = [
        phase(A.format(step) + DONE, seed=seed, step=step, run=run, seen=f"{run} {seed} {step}")
        for run in ("one", "two")
        for seed in range(10)
        for step in range(3)
    ]
    data = made(place, loaded, chosen)
    train, held_out = ({one.source.seed for one in part} for part in (data.train(), data.held_out()))
    assert len(held_out) == 3 and len(train) == 7 and not train & held_out
    assert (data.facts.train, data.facts.held_out) == (42, 18)
    assert {seed for _, seed in prepare.prepared(data.folder).held_out} == held_out
    assert data.facts.runs == ("one", "two")
    again = made(place, loaded, chosen[::-1])
    assert {one.source.seed for one in again.held_out()} == held_out


def test_one_conversation_is_never_on_both_sides(place: Path, loaded: Scaffold) -> None:
    chosen = [phase(A + DONE, seed=seed) for seed in range(10)]
    chosen += [phase(A + DONE, seed=seed, seen=str(seed)) for seed in range(10)]
    data = made(place, loaded, chosen)
    train, held_out = ({example.content(one) for one in part} for part in (data.train(), data.held_out()))
    assert train and held_out and not train & held_out
    assert data.facts.train + data.facts.held_out == 11


def test_a_dataset_of_two_scaffolds_is_refused(place: Path, loaded: Scaffold) -> None:
    a_run(place / "other", scaffold.load("crafter/v0"))
    with pytest.raises(UserError, match=r"run other: was played with crafter/v0 .* not with crafter/v1"):
        made(place, loaded, [phase(A + DONE), phase(A + DONE, run="other")])


def test_runs_of_another_game_and_unknown_ones_are_refused(place: Path, loaded: Scaffold) -> None:
    a_run(place / "nethack", scaffold.load("nethack/v1"), "nethack")
    with pytest.raises(UserError, match="run nethack: plays no crafter"):
        made(place, loaded, [phase(A + DONE, run="nethack")])
    with pytest.raises(UserError, match="no run"):
        made(place, loaded, [phase(A + DONE, run="gone")])


def test_too_few_examples_are_told_with_the_reasons(place: Path, loaded: Scaffold) -> None:
    chosen = [phase(A + DONE), phase("hm", step=4), phase("hm", step=5)]
    with pytest.raises(UserError, match=r"1 examples are left of 3 .*\(no operation: 2\).* wants 2 .*data\.minimum"):
        made(place, loaded, chosen, DataRecipe(minimum=2))
    assert not list(place.parent.glob("data-*"))


worlds = st.frozensets(st.tuples(st.sampled_from(["Crafter", "NetHack"]), st.integers(0, 10**6)), max_size=60)


@given(worlds, st.floats(0.01, 0.99))
def test_some_worlds_are_held_out_and_some_not(there: frozenset[tuple[str, int]], share: float) -> None:
    held_out = held_out_worlds(there, share)
    assert held_out <= there
    assert held_out == held_out_worlds(sorted(there), share)
    if len(there) < 2:
        assert not held_out
    else:
        assert 1 <= len(held_out) <= len(there) - 1
        assert abs(len(held_out) - share * len(there)) <= 1


@given(worlds, st.floats(0.01, 0.99), st.integers(0, 10**6))
def test_more_data_moves_one_world_at_most(there: frozenset[tuple[str, int]], share: float, seed: int) -> None:
    before, after = held_out_worlds(there, share), held_out_worlds({*there, ("MiniHack", seed)}, share)
    assert len(before ^ after) <= 2


# Rules and traces


def rewritten(data: Dataset, folder: Path, **changed: object) -> Dataset:
    """The dataset with its first example changed, as somebody would who can count hashes."""
    first, *rest = data.train()
    values = {**first.model_dump(), **changed}
    held_out = list(data.held_out())
    return example.write(
        folder, [Example.model_validate(values), *rest], held_out, scaffold="s", game="crafter", runs=data.facts.runs
    )


def test_training_refuses_targets_that_break_a_rule(place: Path, loaded: Scaffold, tmp_path: Path) -> None:
    data = made(place, loaded, [phase(A + DONE), phase(B, kind="plan")])
    first = next(data.train())
    source = {**first.source.model_dump(), "kept": [(0, 3)]}
    with pytest.raises(UserError, match=r"1 problem\(s\), cannot be learnt(.|\n)*seed-1/3/log, turn 0: no operation"):
        check_rules(rewritten(data, tmp_path / "bad", target="hm!", source=source))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A real run of the scripted player."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOMEM_RUNS", str(tmp_path_factory.mktemp("runs")))
        return traces.a_run("played", seeds="1..2", steps=8)


@pytest.fixture
def real(played: Run, tmp_path: Path) -> Dataset:
    """A dataset of everything that the run holds."""
    chosen = [one for episode in RunTrace(played).episodes for one in candidates("played", episode)]
    of = scaffold.load(str(played.folder / played.config.scaffolds["crafter"].folder))
    return prepare.prepare(chosen, LENIENT, tmp_path / "data", scaffold=of, game="crafter", runs=played.folder.parent)


def test_a_real_run_becomes_a_dataset_that_is_verbatim(real: Dataset, played: Run) -> None:
    check_rules(real)
    check_verbatim(real, played.folder.parent)
    assert real.facts.train >= 5 and real.facts.held_out >= 5
    assert {one.source.seed for one in real.train()} ^ {one.source.seed for one in real.held_out()} == {1, 2}
    account = prepare.prepared(real.folder)
    # Each turn is an example, or it is told why not.
    assert real.facts.train + real.facts.held_out + len(account.left_out) == account.turns
    assert not account.dropped.keys() - {"the same as another", "no operation"}
    system = json.loads((real.folder / "train.jsonl").read_bytes().split(b"\n")[0])["prompt"][0]["content"]
    assert "# Memory files" in system


def test_candidates_of_a_step_are_those_of_the_episode(played: Run) -> None:
    (episode, *_) = RunTrace(played).episodes
    every = list(candidates("played", episode))
    assert [one for step in range(len(episode)) for one in candidates_of("played", episode, step)] == every


def another_word(data: Dataset) -> dict[str, object]:
    return {"target": next(data.train()).target.replace("APPEND", "append")}


def another_step(data: Dataset) -> dict[str, object]:
    source = next(data.train()).source
    return {"source": {**source.model_dump(), "step": source.step + 1}}


def another_turn(data: Dataset) -> dict[str, object]:
    return {"source": {**next(data.train()).source.model_dump(), "turn": 9}}


def another_prompt(data: Dataset) -> dict[str, object]:
    system, *rest = next(data.train()).prompt
    return {"prompt": [{**system, "content": system["content"] + " "}, *rest]}


def a_late_step(data: Dataset) -> dict[str, object]:
    return {"source": {**next(data.train()).source.model_dump(), "step": 10**6}}


@pytest.mark.parametrize("change", [another_word, another_step, a_late_step, another_turn, another_prompt])
def test_an_example_that_is_not_in_the_trace_is_named(
    real: Dataset, played: Run, tmp_path: Path, change: object
) -> None:
    assert callable(change)
    first = next(real.train()).source
    forged = rewritten(real, tmp_path / "forged", **change(real))
    with pytest.raises(UserError, match=rf"not as the traces have it(.|\n)*played/Crafter/seed-{first.seed}/"):
        check_verbatim(forged, played.folder.parent)


def test_runs_are_found_where_they_usually_are(real: Dataset, played: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOMEM_RUNS", str(played.folder.parent))
    check_verbatim(real)
    monkeypatch.setenv("AUTOMEM_RUNS", str(real.folder))
    with pytest.raises(UserError, match="no run 'played'"):
        check_verbatim(real)


def test_an_episode_that_is_gone_is_told(real: Dataset, played: Run, tmp_path: Path) -> None:
    source = {**next(real.train()).source.model_dump(), "seed": 77}
    with pytest.raises(UserError, match="no episode of task Crafter and seed 77"):
        check_verbatim(rewritten(real, tmp_path / "forged", source=source), played.folder.parent)
