"""Where a run's time went: how long the games worked beside the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.record import Episode


class Times:
    """Sums over the turns of a record.

    Attributes:
        turns: How many whose reply did not come from the reply cache; only these are counted.
        game: Seconds that the games worked, their oracles and first states included.
        model: Seconds that the model worked on replies.
    """

    def __init__(self) -> None:
        """Nothing has been read yet."""
        self.turns = 0
        self.game = 0.0
        self.model = 0.0

    def over(self, episodes: Iterable[Episode]) -> Iterator[Episode]:
        """Hand on the episodes of a record, and add them up as they pass."""
        for episode in episodes:
            asked = [turn for turn in episode.turns if not turn.cached]
            self.turns += len(asked)
            self.game += episode.start.seconds_game if asked else 0.0
            self.game += sum(turn.seconds_game for turn in asked)
            self.model += sum(turn.seconds_generating for turn in asked)
            yield episode

    @property
    def sentence(self) -> str:
        """How much the games took, of a turn and of the model's time."""
        if not self.turns:
            return "No turn was played, but for replies out of the cache."
        said = f"The games took {1000 * self.game / self.turns:.2f} ms a turn"
        if not self.model:
            return f"{said}."
        share = 100 * self.game / self.model
        return f"{said}, {share:.2g} % of the model's {1000 * self.model / self.turns:.0f} ms."
