"""The process that steps games: ``python -m automem.game_worker FD``.

NLE is C code that can die; here it dies alone. One worker holds several games and answers
requests in the order in which they come, over a socket that it inherits. It ends when the
socket closes, so it never outlives the process that started it.

A message is a 4-byte length (big-endian) and a pickle. Both ends are this program; nothing
that a model wrote is unpickled.
"""

from __future__ import annotations

import contextlib
import pickle
import socket
import struct
import sys
import traceback
from typing import Any

import games
from games import Observation, Progress, Transition
from games.boxoban import BoxobanError

LENGTH = struct.Struct(">I")


class GameRaised(Exception):
    """A game raised something that nobody expected of it; the text holds its traceback."""


def serve(connection: socket.socket) -> None:
    """Answer requests ``(game, verb, arguments)`` with ``(ok, value)`` until the socket closes."""
    playing: dict[int, games.Game] = {}
    stream = connection.makefile("rwb", buffering=1 << 16)
    while header := stream.read(LENGTH.size):
        number, verb, arguments = pickle.loads(stream.read(LENGTH.unpack(header)[0]))
        try:
            reply: tuple[bool, Any] = (True, _answer(playing, number, verb, arguments))
        except (games.InvalidAction, BoxobanError, ModuleNotFoundError) as error:
            reply = (False, error)
        except Exception as error:
            reply = (False, GameRaised(f"{type(error).__name__}: {error}\n{traceback.format_exc()}"))
        data = pickle.dumps(reply, protocol=pickle.HIGHEST_PROTOCOL)
        stream.write(LENGTH.pack(len(data)) + data)
        stream.flush()


def flat(transition: Transition) -> tuple:
    """A transition as plain values: pickling frozen dataclasses with slots costs as much as a step of NetHack."""
    seen, progress = transition.observation, transition.progress
    return (
        seen.long_term,
        seen.short_term,
        transition.reward,
        transition.terminated,
        transition.truncated,
        progress.progression,
        dict(progress.achievements),
        dict(progress.facts),
    )


def whole(values: tuple) -> Transition:
    """The transition that `flat` took apart."""
    long_term, short_term, reward, terminated, truncated, progression, achievements, facts = values
    progress = Progress(progression, achievements, facts)
    return Transition(Observation(long_term, short_term), reward, terminated, truncated, progress)


def _answer(playing: dict[int, games.Game], number: int, verb: str, arguments: tuple) -> Any:
    if verb == "open":
        task, seed, options = arguments
        game = games.make(task, **options)
        playing[number] = game
        observation = game.reset(seed)
        return observation, dict(game.actions), game.instructions, game.default_action, game.progress()
    if verb == "step":
        return flat(playing[number].step(*arguments))
    if verb == "screen":
        return playing[number].screen()
    if verb == "close":
        if number in playing:
            playing.pop(number).close()
        return None
    raise ValueError(f"no verb {verb!r}")


def main() -> None:
    """Serve the socket whose number is the first argument."""
    with socket.socket(fileno=int(sys.argv[1])) as inherited, contextlib.suppress(BrokenPipeError, ConnectionError):
        serve(inherited)  # whoever asked may be gone before the answer is there


if __name__ == "__main__":
    # Under its own name, so that what is pickled here is known there.
    from automem import game_worker

    game_worker.main()
