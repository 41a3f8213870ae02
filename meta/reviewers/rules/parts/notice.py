"""Tells the model when its actions change nothing, or lead to and fro."""

from collections import deque

from automem.hooks import Step


class Notice:
    """Says, under the name `notice`, that nothing has changed, or that the same views come back."""

    def __init__(self, still: int, returns: int) -> None:
        """Args: still: steps without any change; returns: known views among the last ten; that are mentioned."""
        self.most_still, self.most_returns = still, returns
        self.still = 0
        self.views: deque[str] = deque(maxlen=10)
        self.known: deque[bool] = deque(maxlen=10)

    def observe(self, step: Step) -> dict[str, str]:
        view = step.observation
        same = bool(self.views) and view == self.views[-1]
        self.still = self.still + 1 if same else 0
        self.known.append(not same and view in self.views)
        self.views.append(view)
        if self.still >= self.most_still:
            tried = ", ".join(dict.fromkeys(step.history[-self.still :]))
            return {"notice": f"Nothing has changed for {self.still} steps; tried: {tried}. Do something else."}
        if sum(self.known) >= self.most_returns:
            return {"notice": "You are going to and fro between the same places. Choose one aim and keep to it."}
        return {}
