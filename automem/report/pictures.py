"""What the game showed at each step: the recorded actions, played once more in the real game.

Traces hold text only. The games are deterministic, so that playing the recorded actions again shows what
the player could have seen; where the text that comes of it is not the recorded one, it is another game, and
pictures of it would be false.
"""

from __future__ import annotations

from typing import Any

import games
from automem.report.screens import Screens
from automem.report.tiles import Tiles
from games.boxoban import BoxobanError


class Pictures:
    """Draws an episode, step by step.

    Attributes:
        kind: "tiles" or "screen".
        note: why there are no pictures, or none from some step on; empty when there is nothing to say.
    """

    def __init__(self, task: str, seed: int, steps: int) -> None:
        """Args: task, seed, steps: the episode and its step limit."""
        self.kind = "screen"
        self.note = ""
        self._screens, self._tiles = Screens(), Tiles()
        self._game: games.Game | None = None
        self._shown = ""
        self._over = False
        try:
            self._game = games.make(task, max_steps=steps)
            self._shown = self._game.reset(seed).text
        except (ModuleNotFoundError, games.UnknownTask, BoxobanError) as error:
            self._stop(f"No pictures: {error}")
            return
        except Exception as error:  # a game that another package adds may raise anything
            self._stop(f"No pictures: the game failed when it was played again: {type(error).__name__}: {error}")
            return
        if games.game_of(task) == "crafter" and hasattr(self._game, "_env"):
            self.kind = "tiles"

    @property
    def there(self) -> bool:
        """Whether the game still shows what was recorded."""
        return self._game is not None

    def restart(self) -> None:
        """The next picture is kept whole, not as what changed."""
        self._screens.restart()

    def draw(self, step: int, recorded: str | None) -> dict[str, Any] | None:
        """The picture of this step; None where there is none.

        Args:
            step: from 0; the number of steps for what the last action led to.
            recorded: the text that was recorded; None when it was not.
        """
        if self._game is None:
            return None
        if recorded is not None and self._shown != recorded:
            self._stop(
                f"No pictures from step {step} on: played again, the game shows another text there than was recorded. "
                "The run was made with other versions of the games, or on another machine (see the versions above)."
            )
            return None
        if self.kind == "tiles":
            return self._tiles.add(self._game._env)  # type: ignore[attr-defined]
        return self._screens.add(self._game.screen())

    def play(self, action: str, step: int) -> None:
        """Play the recorded action of this step."""
        if self._game is None:
            return
        if self._over:
            self._stop(f"No pictures from step {step} on: played again, the game was over before.")
            return
        try:
            transition = self._game.step(action)
        except Exception as error:  # an action that the game lacks now, or a fault of the game
            self._stop(f"No pictures from step {step + 1} on: {type(error).__name__}: {error}")
            return
        self._shown, self._over = transition.observation.text, transition.done

    def legend(self) -> dict[str, Any]:
        """What the pictures are made of (`Screens.styles`, `Tiles.looks`, `Tiles.items`)."""
        if self.kind == "tiles":
            return {"looks": self._tiles.looks, "items": self._tiles.items}
        return {"styles": self._screens.styles}

    def close(self) -> None:
        """End the game. Safe to call twice."""
        if self._game is not None:
            self._game.close()
            self._game = None

    def _stop(self, why: str) -> None:
        self.note = why
        self.close()
