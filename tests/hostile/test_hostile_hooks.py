"""Hostile scaffold code in real episodes: each attack is contained and logged, and its episode goes on."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shutil
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import zstandard
from typer.testing import CliRunner

from automem import cli, evaluate, scaffold, trace
from automem.episode import MEMORY, STEPS, EpisodeJob, play
from automem.evaluate import Request
from automem.game_pool import GamePool
from automem.models.fixed import Fixed
from automem.models.protocol import Message
from automem.records import StepRecord
from automem.runs import PlayedModel
from automem.sandbox import Mode, Sandbox, SandboxConfig, SandboxUnavailable, modes
from tests.hostile.attacks import ATTACKS, PRELUDE, Attack

SECRET = "canary-9f27c1"
SEED = 730_241
STEPS_PLAYED = 3
AT_ONCE = 2
LIMITS = SandboxConfig(call_seconds=2.0, memory_mb=192, losses=0)
"""Seconds enough for the honest ones on a busy machine: they share the sandbox, and what is lost there is lost."""

PLAYED = tuple(attack for attack in ATTACKS if attack.machine in ("", platform.machine()))
MISTAKE = re.compile(r"(\w+: )?(NameError|SyntaxError|AttributeError|IndentationError|UnboundLocalError)\b")
"""How an event begins when the attack itself is wrong."""

HONEST = f"""{PRELUDE}
class Hooks:
    def reset(self, game, task):
        self.seen = []
    def observe(self, step):
        self.seen.append(len(step.observation))
        marked = getattr(collections, "marked", "nothing")
        return {{"note": f"honest: {{len(self.seen)}} {{marked}}"}}
    def maintain(self, step, memory):
        return [append("honest.txt", f"{{step.number}} {{len(memory.files())}}")]
"""


@dataclass
class Outside:
    """What is there to be attacked, and what came of it."""

    folder: Path
    fills: dict[str, str] = field(default_factory=dict)
    visitors: list[str] = field(default_factory=list)

    def fill(self, source: str) -> str:
        """The source with real addresses and paths."""
        for name, value in self.fills.items():
            source = source.replace("{" + name + "}", value)
        return source


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    folder = tmp_path_factory.mktemp("outside")
    there = Outside(folder)
    canary = folder / "canary.txt"
    canary.write_text(SECRET)
    (folder / "link").symlink_to(canary)
    abstract = f"automem-hostile-{os.getpid()}"
    with ExitStack() as stack:
        servers = {
            "IPv4": socket.create_server(("127.0.0.1", 0)),
            "Unix": socket.socket(socket.AF_UNIX),
            "abstract": socket.socket(socket.AF_UNIX),
        }
        if socket.has_ipv6:
            servers["IPv6"] = socket.create_server(("::1", 0), family=socket.AF_INET6)
        servers["Unix"].bind(str(folder / "socket"))
        servers["abstract"].bind(f"\0{abstract}")
        for name, server in servers.items():
            stack.enter_context(closing(server))
            server.listen()
            threading.Thread(target=_welcome, args=(server, name, there.visitors), daemon=True).start()
        there.fills = {
            "CANARY": str(canary),
            "LINK": str(folder / "link"),
            "RUN": str(folder),
            "SEED BACKWARDS": str(SEED)[::-1],
            "HOST": str(os.getpid()),
            "PORT": str(servers["IPv4"].getsockname()[1]),
            "PORT6": str(servers["IPv6"].getsockname()[1]) if "IPv6" in servers else "1",
            "UNIX": str(folder / "socket"),
            "ABSTRACT": abstract,
        }
        old = os.environ.get("AUTOMEM_CANARY")
        os.environ["AUTOMEM_CANARY"] = SECRET
        yield there
        os.environ.pop("AUTOMEM_CANARY") if old is None else os.environ.update(AUTOMEM_CANARY=old)


def _welcome(server: socket.socket, name: str, visitors: list[str]) -> None:
    while True:
        try:
            server.accept()
        except OSError:
            return
        visitors.append(name)


@pytest.fixture(scope="module", params=["bubblewrap", "landlock"])
def played(request: pytest.FixtureRequest, outside: Outside) -> dict[str, list[StepRecord]]:
    """Every attack's episode, all in one sandbox, with an honest scaffold before, among and after them."""
    mode: Mode = request.param
    if not _can(mode):
        pytest.skip(f"{mode} cannot run here")
    honest = [Attack(f"honest {when}", HONEST) for when in ("before", "among", "after")]
    middle = len(PLAYED) // 2
    order = [honest[0], *PLAYED[:middle], honest[1], *PLAYED[middle:], honest[2]]
    return asyncio.run(asyncio.wait_for(_play_all(mode, order, outside), 400))


def _can(mode: Mode) -> bool:
    async def ask() -> None:
        sandbox = Sandbox(LIMITS, mode)
        try:
            process = await sandbox.open("class Hooks:\n    def observe(self, step):\n        return {}\n")
            await process.call("observe", [[0, "", None, None, []]])
        finally:
            await sandbox.close()

    try:
        asyncio.run(ask())
    except SandboxUnavailable:
        return False
    return True


async def _play_all(mode: Mode, attacks: Sequence[Attack], outside: Outside) -> dict[str, list[StepRecord]]:
    pool, sandbox, turns = GamePool(1), Sandbox(LIMITS, mode), asyncio.Semaphore(AT_ONCE)

    async def one(attack: Attack) -> list[StepRecord]:
        async with turns:
            folder = outside.folder / mode / attack.name
            loaded = scaffold.load(str(_scaffold(folder / "scaffold", outside.fill(attack.source))))
            job = EpisodeJob(folder / "episode", "Crafter", SEED, STEPS_PLAYED, loaded.folder)
            await play(job, loaded, Fixed(_rule), pool, None, sandbox)
            records, damage = trace.read(job.folder / STEPS)
            assert damage is None
            return records

    try:
        # The honest ones run alone where they stand first and last, so that what was left before would show.
        first = await one(attacks[0])
        among = await asyncio.gather(*(one(attack) for attack in attacks[1:-1]))
        last = await one(attacks[-1])
    finally:
        pool.close()
        await sandbox.close()
    return dict(zip((attack.name for attack in attacks), [first, *among, last], strict=True))


def _rule(asked: Sequence[Message]) -> str:
    return "<|DONE|><|END|>" if "# LOG" in asked[1]["content"] else "<|ACTION|>Move West<|END|>"


def _scaffold(folder: Path, hooks: str) -> Path:
    shutil.copytree(scaffold.find("crafter/v0"), folder)
    with (folder / "scaffold.toml").open("a") as file:
        file.write('\n[hooks]\nshows = ["note"]\n')
    with (folder / "prompts" / "plan.j2").open("a") as file:
        file.write("\n{{ hooks.note }}\n")
    (folder / "hooks.py").write_text(hooks, encoding="utf-8", errors="surrogatepass")
    return folder


def test_there_are_at_least_thirty_attacks_and_no_two_share_a_name() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 30


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_is_contained_and_logged_and_its_episode_goes_on(
    played: dict[str, list[StepRecord]], attack: Attack
) -> None:
    if attack not in PLAYED:
        pytest.skip(f"it uses numbers of system calls of {attack.machine}, and this is {platform.machine()}")
    records = played[attack.name]
    assert [record.step for record in records] == list(range(STEPS_PLAYED))
    assert all(record.action == "Move West" and not record.fallback for record in records)
    events = [event for record in records for event in record.hooks]
    # losses = 0: the first lost process turns the hooks off.
    wanted = attack.kinds | ({"off"} if "lost" in attack.kinds else set())
    assert {event.kind for event in events} & wanted, events
    assert {event.kind for event in events} <= wanted | {"error"}, events
    assert any(word in event.text for event in events for word in attack.says), events
    assert not any(MISTAKE.match(event.text) for event in events), events


@pytest.mark.parametrize("when", ["before", "among", "after"])
def test_an_honest_scaffold_beside_them_notices_nothing(played: dict[str, list[StepRecord]], when: str) -> None:
    records = played[f"honest {when}"]
    assert all(record.hooks == () for record in records)
    shown = [record.plan[0].prompt.after.rpartition("honest: ")[2].split() for record in records]
    assert shown == [[str(i), "nothing"] for i in range(1, STEPS_PLAYED + 1)]
    assert [op.args[1] for record in records for op in record.maintained] == ["0 1", "1 2", "2 2"]


def test_nothing_came_out_and_nothing_was_changed(played: dict[str, list[StepRecord]], outside: Outside) -> None:
    assert outside.visitors == []
    assert (outside.folder / "canary.txt").read_text() == SECRET
    assert sorted(path.name for path in outside.folder.iterdir() if path.suffix == ".touched") == []
    assert list(outside.folder.rglob("out")) == []
    memories = list(outside.folder.glob(f"*/name files outside/episode/{MEMORY}"))
    assert memories
    assert all([path.name for path in memory.iterdir()] == ["goals.txt"] for memory in memories)
    traces = list(outside.folder.rglob(STEPS))
    assert len(traces) >= len(played)
    for path in traces:
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as text:
            assert SECRET.encode() not in text.read(), path
    for record in played["find the seed or the score"]:
        assert "FOUND" not in record.plan[0].prompt.after


def test_the_choice_of_containment_is_made_before_anything_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOMEM_RUNS", str(tmp_path))
    asked = Request(
        "crafter",
        PlayedModel(name="scripted"),
        scaffolds=("crafter/v1",),
        episodes=1,
        steps=1,
        name="asked",
        sandbox=LIMITS,
    )
    monkeypatch.setattr(modes, "trouble", lambda mode: f"{mode} is not there")
    with pytest.raises(SandboxUnavailable, match=r"bubblewrap is not there(.|\n)*--unsafe-hooks"):
        evaluate.plan(asked)
    told = CliRunner().invoke(cli.app, "eval crafter --scaffold crafter/v1 --model scripted --episodes 1 --steps 1")
    assert isinstance(told.exception, SandboxUnavailable)
    assert list(tmp_path.iterdir()) == []
    planned = evaluate.plan(replace(asked, sandbox=LIMITS.model_copy(update={"unsafe": True})))
    assert planned.scaffolds["crafter"].hooks is not None
    assert evaluate.plan(replace(asked, scaffolds=("crafter/v0",))).scaffolds["crafter"].hooks is None
