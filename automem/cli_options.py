"""Options that several commands share, and what is made of them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.console import Console

from automem.completion import complete_run, complete_scaffold
from automem.errors import UserError

if TYPE_CHECKING:
    from automem.runs import PlayedModel
    from automem.sandbox.limits import SandboxConfig
    from specialist.play import Chosen

ScaffoldName = Annotated[
    str | None,
    typer.Option(
        "--scaffold",
        help="game/version, a folder, runs/NAME, or 8 or more digits of an identity; each game's v0 when not given.",
        autocompletion=complete_scaffold,
    ),
]
ModelName = Annotated[
    str, typer.Option("--model", help="scripted, smollm2, or provider/model as LiteLLM names it.", show_default=True)
]
ApiBase = Annotated[
    str,
    typer.Option(
        "--api-base",
        envvar="AUTOMEM_API_BASE",
        help="URL of an OpenAI-compatible server, e.g. http://127.0.0.1:8000/v1.",
    ),
]
Temperature = Annotated[float, typer.Option("--temperature", min=0.0, max=2.0, help="0 is greedy.")]
MaxTokens = Annotated[
    int,
    typer.Option(
        "--max-tokens", min=0, help="Tokens of one reply, of a specialist's, too; 0: the model's own default."
    ),
]
AgentName = Annotated[
    str,
    typer.Option(
        "--agent", help="Who plays: memory, naive, cot, random, scripted, or one of a package.", show_default=True
    ),
]
Seeds = Annotated[str | None, typer.Option("--seeds", help="42..51, 1,3,5 or 7; the suite's when not given.")]
Episodes = Annotated[int | None, typer.Option("--episodes", help="Only the first so many seeds of each task.")]
Workers = Annotated[int, typer.Option("--workers", min=0, help="Episodes at once; 0: as the model allows.")]
Steps = Annotated[int | None, typer.Option("--steps", help="Steps of an episode at most, instead of the suite's.")]
RunName = Annotated[str | None, typer.Option("--run", help="Name of the run, in runs/.", autocompletion=complete_run)]

_SPECIALIST = "A memory specialist"
SpecialistName = Annotated[
    str | None,
    typer.Option(
        "--specialist",
        help="Does the memory work: the folder of an adapter, or a model's name.",
        rich_help_panel=_SPECIALIST,
    ),
]
SpecialistBase = Annotated[
    str,
    typer.Option(
        "--specialist-base",
        help="hosted_vllm/NAME of its base model, on a server of your own.",
        rich_help_panel=_SPECIALIST,
    ),
]
SpecialistApiBase = Annotated[
    str, typer.Option("--specialist-api-base", help="URL of its server.", rich_help_panel=_SPECIALIST)
]
Merged = Annotated[
    bool,
    typer.Option(
        "--merged",
        help="Serve it worked into a copy of its base model: faster, but a server of its own.",
        rich_help_panel=_SPECIALIST,
    ),
]
ConsultTurns = Annotated[
    int,
    typer.Option(
        "--consult-turns",
        min=0,
        help="Replies of PLAN in which it may read; 0: as it was trained.",
        rich_help_panel=_SPECIALIST,
    ),
]

Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run of this name.")]
UnsafeHooks = Annotated[
    bool,
    typer.Option(
        "--unsafe-hooks",
        help="Run a scaffold's code even where nothing can contain it. It can then read and send what you can.",
    ),
]


def played_model(name: str, api_base: str, temperature: float, max_tokens: int) -> PlayedModel:
    """The model that was asked for, its name and address checked without reaching it."""
    from automem.models import registry
    from automem.runs import PlayedModel

    registry.check(name)
    if name in registry.OURS:
        api_base = ""  # they have no address; one in the environment is meant for other models
    _check_address(api_base)
    return PlayedModel(name=name, api_base=api_base, temperature=temperature, max_tokens=max_tokens)


def chosen_specialist(
    name: str | None, base: str, api_base: str, merged: bool, consult_turns: int, max_tokens: int
) -> Chosen | None:
    """The memory specialist that was asked for, checked without reaching it; None when none was."""
    if name is None:
        if base or api_base or merged or consult_turns:
            raise UserError("--specialist-base, --specialist-api-base, --merged and --consult-turns need --specialist")
        return None
    from automem.models import registry
    from automem.runs import PlayedModel
    from specialist import play

    if api_base and name in registry.OURS:
        raise UserError(f"--specialist-api-base: {name} has no address; leave it out, or name a model of that server")
    _check_address(api_base)
    asked = PlayedModel(name=name, api_base=api_base, max_tokens=max_tokens)
    return play.choose(asked, base=base, merged=merged, consult_turns=consult_turns)


def sandbox_limits(unsafe_hooks: bool) -> SandboxConfig:
    """The limits of scaffold code that the configuration file sets."""
    from automem import config

    sandbox = config.load().sandbox
    return sandbox.model_copy(update={"unsafe": True}) if unsafe_hooks else sandbox


def _check_address(api_base: str) -> None:
    if not api_base:
        return
    try:
        address = urlsplit(api_base)
        good = address.scheme in ("http", "https") and bool(address.hostname) and (address.port or 1) > 0
    except ValueError:
        good = False
    if not good or any(c.isspace() for c in api_base):
        raise UserError("--api-base: write a URL such as http://127.0.0.1:8000/v1")
    if address.username or address.password or address.query:
        # The address is stored with the run.
        raise UserError("--api-base: leave keys and passwords out of the URL; LiteLLM reads keys from the environment")


def named_options(option: str, given: list[str] | None) -> dict[str, Any]:
    """The values of an option that is given as NAME=VALUE, by name; a name that is given twice has a list."""
    found: dict[str, Any] = {}
    for text in given or ():
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UserError(f"{option} {text!r}: write NAME=VALUE")
        before = found.get(name)
        found[name] = value if before is None else [*(before if isinstance(before, list) else [before]), value]
    return found


def refuse_named(why: str, given: Mapping[str, object]) -> None:
    """Raise `UserError` when options were named that would do nothing.

    Args:
        why: what leaves them nothing to do.
        given: by option; None where it was not named.
    """
    if named := [option for option, value in given.items() if value is not None]:
        raise UserError(f"{why}: leave out {', '.join(named)}")


EXIT_INCOMPLETE = 1
"""It is over, but some of its episodes failed."""
EXIT_STOPPED = 130
"""Ctrl-C, as shells count it."""


def again(run: str, there: bool = True) -> str:
    """The command that was given, to go on with this run; `there`: it is on disk already."""
    words = ["automem", *sys.argv[1:]]
    words += [] if any(word.partition("=")[0] == "--run" for word in words) else ["--run", run]
    return shlex.join(words if "--resume" in words or not there else [*words, "--resume"])


def stopped(run: str, there: bool) -> typer.Exit:
    """Say after Ctrl-C how to go on; raise what this returns."""
    told = f"stopped; go on with: {again(run, there)}"
    Console(stderr=True).print(told, markup=False, highlight=False, soft_wrap=True)
    return typer.Exit(EXIT_STOPPED)
