"""Rush Hour."""

from __future__ import annotations

from agentgym.game import Game
from agentgym.games.rush_hour import milestones, rules, text
from agentgym.games.rush_hour.component import canonical
from agentgym.games.rush_hour.instances import generate, load
from agentgym.games.rush_hour.options import RushHourOptions
from agentgym.games.rush_hour.oracle import make_oracle

GAME = Game(
    name=__name__,
    title="RushHour",
    version=0,
    options=RushHourOptions,
    step=rules.step,
    legal=rules.legal,
    terminal=rules.terminal,
    success=rules.success,
    score=rules.score,
    progress=rules.progress,
    observe=rules.observe,
    reached=milestones.reached,
    invalid_reward=rules.TURN_REWARD,
    generate=generate,
    load=load,
    canonical=canonical,
    layout=text.layout,
    instructions=text.instructions,
    render=text.render,
    parse=text.parse,
    explain=text.explain,
    make_oracle=make_oracle,
    milestone_total=milestones.total,
)
