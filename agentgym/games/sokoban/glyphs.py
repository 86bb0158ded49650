"""The characters that show a board."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentgym.errors import InvalidOption, UnknownName

PARTS = ("floor", "target", "box", "box_on_target", "player", "player_on_target", "wall")
"""What a cell can show, in the order of the cell codes of `rules`."""

SYMBOLS = {"cast": "_OX*PS#", "proact": " ?$*@+#", "proact-variant": "_OB√P+#"}
"""Named sets of glyphs: those of CAST, ProAct, and ProAct's variant."""

Symbols = str | Mapping[str, str] | Iterable[tuple[str, str]]
"""A name of `SYMBOLS`, or a glyph per part; parts left out look as in "cast"."""


def glyphs_of(symbols: Symbols) -> str:
    """The glyphs by cell code.

    Raises:
        UnknownName: A set or a part that does not exist.
        InvalidOption: A glyph that is not one visible character or a blank, or stands for two.
    """
    if isinstance(symbols, str):
        if symbols not in SYMBOLS:
            raise UnknownName.of("symbols", symbols, SYMBOLS)
        return SYMBOLS[symbols]
    chosen = dict(zip(PARTS, SYMBOLS["cast"], strict=True))
    for part, glyph in dict(symbols).items():
        if part not in chosen:
            raise UnknownName.of("part of a Sokoban board", part, PARTS)
        if len(glyph) != 1 or not glyph.isprintable():
            raise InvalidOption(f"The glyph of {part!r} is one printable character, got {glyph!r}.")
        chosen[part] = glyph
    if len(set(chosen.values())) < len(chosen):
        raise InvalidOption(f"Every part of the board has a glyph of its own, got {chosen!r}.")
    return "".join(chosen.values())
