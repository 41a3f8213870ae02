"""`scripted`: a deterministic player that obeys the same text protocol as a language model.

It is a pure function from messages to text. It keeps nothing between calls: what it knows
of the past is what it wrote to memory and reads back. Not an LLM, and never presented as one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from automem.models.scripted.reading import Call, read_call

__all__ = ["play"]

_LOG_NOTHING = "<|DONE|><|END|>"


def play(messages: Sequence[Mapping[str, str]]) -> str:
    """The reply to a conversation. The same messages give the same text; never raises."""
    try:
        call = read_call(messages)
    except (ValueError, LookupError, TypeError, AttributeError):
        return f"{_LOG_NOTHING}\n<|ACTION|>Noop<|END|>"
    try:
        return _player(call)(call)
    except Exception:  # whatever a scaffold shows, the episode goes on; tests call the players themselves
        return _LOG_NOTHING if call.phase == "log" else f"<|ACTION|>{_first_action(call)}<|END|>"


def _player(call: Call) -> Callable[[Call], str]:
    if "You see" in call.observation and "Your status:" in call.observation:
        from automem.models.scripted import crafter

        return crafter.play
    from automem.models.scripted import nethack

    return nethack.play


def _first_action(call: Call) -> str:
    return "Noop" if "- Noop: " in call.briefing.text else "esc"
