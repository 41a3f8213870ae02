"""Understands actions that the game does not have, where what is meant is clear."""

from automem.hooks import Step


class Repair:
    """Plays the action that was meant; what is the game's own is never touched."""

    def __init__(self, meant: dict[str, str]) -> None:
        """Args: meant: an action as it was written, in lower case -> the game's."""
        self.meant = meant

    def check_action(self, step: Step, action: str) -> str | None:
        found = self.meant.get(" ".join(action.lower().replace("_", " ").split()).strip(".!\"'`"))
        return found if found != action else None
