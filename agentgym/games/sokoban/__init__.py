"""Sokoban."""

from agentgym.game import Game, parse_by_lookup
from agentgym.games.sokoban.boards import canonical
from agentgym.games.sokoban.instances import SokobanOptions, generate, load
from agentgym.games.sokoban.milestones import reached
from agentgym.games.sokoban.oracle import make_oracle
from agentgym.games.sokoban.rules import legal, observe, progress, score, step, success
from agentgym.games.sokoban.text import explain, instructions, layout, milestone_total, render

GAME = Game(
    name=__name__,
    title="Sokoban",
    version=0,
    options=SokobanOptions,
    step=step,
    legal=legal,
    terminal=success,
    success=success,
    score=score,
    progress=progress,
    observe=observe,
    reached=reached,
    milestones_need_oracle=True,
    invalid_reward=-0.1,
    generate=generate,
    load=load,
    canonical=canonical,
    layout=layout,
    instructions=instructions,
    render=render,
    parse=parse_by_lookup,
    explain=explain,
    make_oracle=make_oracle,
    milestone_total=milestone_total,
)
"""The game, as the environments play it."""
