"""From phases that were chosen to a dataset: one item a turn, cleaned, and divided by episode.

A turn is an item of its own: the conversation up to it, with it as the message to learn. The loss is on that message
only, so the first turns of a long phase would be learned from nowhere else.

Beside the dataset stands ``prepared.json``: what was left out, and why.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from automem.errors import UserError
from automem.ops import parse
from automem.records import Phase
from automem.scaffold import Scaffold
from specialist import example, verify
from specialist.candidate import Candidate
from specialist.clean import Dropped, Reason, clean
from specialist.example import Dataset, Example, Source
from specialist.recipe import DataRecipe
from specialist.shortage import Shortage

PREPARED = "prepared.json"
PHASES: tuple[Phase, ...] = ("log", "plan")

Why = (
    Reason
    | Literal[
        "refused when it was run",
        "more operations than a reply may have",
        "after an action",
        "the same as another",
    ]
)
"""Why a turn is no example: what `specialist.clean` says of its text, and what else is known of it."""

World = tuple[str, int]
"""Task and seed: the same game, in whichever run it was played."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LeftOut(_Strict):
    """A turn that became no example."""

    place: str
    """`specialist.candidate.Place`, in words."""
    turn: int
    reason: Why
    detail: str = ""


class Prepared(_Strict):
    """All of ``prepared.json``."""

    phases: int
    """Phases that were chosen."""
    turns: int
    """Turns that they have together."""
    examples: dict[Phase, int]
    """Turns that became examples, by phase."""
    operations: dict[str, int]
    """How often the examples use each operation."""
    dropped: dict[str, int]
    """Turns that did not, by reason, the most frequent first."""
    held_out: tuple[World, ...]
    """Tasks and seeds that are kept from training."""
    left_out: tuple[LeftOut, ...]
    """Each turn that did not, in the order in which they were given."""


def prepare(
    chosen: Iterable[Candidate],
    recipe: DataRecipe,
    folder: Path,
    *,
    scaffold: Scaffold,
    game: str,
    runs: Path | None = None,
) -> Dataset:
    """Write the dataset of these phases.

    Args:
        chosen: the phases, in the order in which the examples are written.
        recipe: `held_out_share` and `minimum` count here.
        folder: where; must not exist.
        scaffold: under which all of them were written.
        game: which was played.
        runs: the folder that the names of their runs are relative to; `automem.runs.runs_folder` when not given.

    Raises:
        UserError: a run was played with another scaffold, or too few examples are left.
    """
    chosen = tuple(chosen)
    names = tuple(sorted({candidate.place.run for candidate in chosen}))
    _check_scaffold(names, scaffold, game, runs)
    operations = {phase: usable(scaffold, phase) for phase in PHASES}
    items, left_out = _items(chosen, operations, scaffold.schema.limits.reply_ops)
    dropped = Counter(out.reason for out in left_out)
    if len(items) < recipe.minimum:
        raise Shortage(_too_few(len(items), len(chosen), recipe.minimum, dropped))
    held_out = held_out_worlds((_world(item.example) for item in items), recipe.held_out_share)
    used = Counter(name for item in items for name in item.operations)
    account = Prepared(
        phases=len(chosen),
        turns=sum(len(candidate.turns) for candidate in chosen),
        examples={phase: sum(item.example.source.phase == phase for item in items) for phase in PHASES},
        operations=dict(used.most_common()),
        dropped=dict(dropped.most_common()),
        held_out=tuple(sorted(held_out)),
        left_out=tuple(left_out),
    )
    dataset = example.write(
        folder,
        (item.example for item in items if _world(item.example) not in held_out),
        (item.example for item in items if _world(item.example) in held_out),
        scaffold=scaffold.identity,
        game=game,
        runs=names,
        operations=operations,
        beside={PREPARED: account.model_dump_json(indent=2).encode()},
    )
    verify.check_rules(dataset)
    return dataset


def prepared(folder: Path) -> Prepared:
    """What was left out of a dataset, and why. Raises `UserError`."""
    path = folder / PREPARED
    try:
        return Prepared.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise UserError(f"{path}: not of this version of AutoMem; prepare the dataset again") from error


def usable(scaffold: Scaffold, phase: Phase) -> tuple[str, ...]:
    """Names of the operations that a model can use in this phase, the scaffold's own included; those that end it not.

    Built-in ones that change memory are among them in PLAN too: the parser knows to refuse them.
    """
    elsewhere = {own.name for own in scaffold.schema.ops.own if own.phase not in ("both", phase)}
    return tuple(name for name in scaffold.schema.ops.names if name not in elsewhere)


def held_out_worlds(worlds: Iterable[World], share: float) -> frozenset[World]:
    """Tasks and seeds to keep from training: about this share of them, and one at least where there are two.

    Which ones hangs on their hashes alone, so that more data, or data chosen otherwise, is divided nearly the same.
    """
    order = sorted(set(worlds), key=lambda world: hashlib.sha256(f"{world[0]}/{world[1]}".encode()).digest())
    if len(order) < 2:
        return frozenset()
    return frozenset(order[: min(max(1, round(share * len(order))), len(order) - 1)])


@dataclass(frozen=True, slots=True)
class _Item:
    example: Example
    operations: tuple[str, ...]


def _items(
    chosen: Iterable[Candidate], operations: dict[Phase, tuple[str, ...]], most: int
) -> tuple[list[_Item], list[LeftOut]]:
    """The examples, and every turn that is none."""
    items: list[_Item] = []
    left_out: list[LeftOut] = []
    seen: set[bytes] = set()
    for candidate in chosen:
        for number, made in enumerate(_of(candidate, operations[candidate.place.phase], most)):
            if isinstance(made, _Item):
                content = hashlib.sha256(example.content(made.example)).digest()
                if content not in seen:
                    seen.add(content)
                    items.append(made)
                    continue
                made = _Why("the same as another")
            left_out.append(LeftOut(place=str(candidate.place), turn=number, reason=made.reason, detail=made.detail))
    return items, left_out


@dataclass(frozen=True, slots=True)
class _Why:
    reason: Why
    detail: str = ""


def _of(candidate: Candidate, enabled: Sequence[str], most: int) -> Iterator[_Item | _Why]:
    """One example, or why it is none, for each turn."""
    place, acted = candidate.place, False
    for number, turn in enumerate(candidate.turns):
        if acted:
            # The model had committed and was asked again; a specialist never commits, and is never asked that.
            yield _Why("after an action")
            continue
        parsed = parse(turn.text, place.phase, enabled)
        acted = parsed.action is not None
        cleaned = clean(turn.text, place.phase, enabled)
        refused = next((op for op in turn.ops if not op.by and not op.ok), None)
        if isinstance(cleaned, Dropped):
            yield _Why(cleaned.reason, cleaned.detail)
        elif refused is not None:
            yield _Why("refused when it was run", f"{refused.label}: {refused.result[:200]}")
        elif cleaned.operations > most:
            yield _Why("more operations than a reply may have", f"{cleaned.operations}, and {most} are run")
        else:
            source = Source(
                run=place.run,
                task=place.task,
                seed=place.seed,
                step=place.step,
                phase=place.phase,
                turn=number,
                kept=cleaned.kept,
            )
            prompt = tuple(candidate.messages(number))
            names = (*(op.name for op in parsed.ops), *(["DONE"] if parsed.done else []))
            yield _Item(Example(prompt=prompt, target=cleaned.text, source=source), names)


def _world(made: Example) -> World:
    return made.source.task, made.source.seed


def _check_scaffold(names: Iterable[str], scaffold: Scaffold, game: str, runs: Path | None) -> None:
    """Prompts of another scaffold ask for other work: one specialist cannot learn from both."""
    for name in names:
        there = verify.run_of(runs, name).config.scaffolds.get(game)
        if there is None:
            raise UserError(f"run {name}: plays no {game}, so nothing of it can be learnt for {game}")
        if there.identity != scaffold.identity:
            raise UserError(
                f"run {name}: was played with {there.ref} ({there.identity[:12]}), not with {scaffold.ref} "
                f"({scaffold.identity[:12]}); a specialist learns from one scaffold: collect with that one, or leave "
                "the run out"
            )


def _too_few(left: int, chosen: int, minimum: int, dropped: Counter[Why]) -> str:
    why = ", ".join(f"{reason}: {count}" for reason, count in dropped.most_common()) or "nothing was dropped"
    return (
        f"{left} examples are left of {chosen} chosen phases ({why}), and the recipe wants {minimum} at least: "
        "collect more episodes, or lower data.minimum"
    )
