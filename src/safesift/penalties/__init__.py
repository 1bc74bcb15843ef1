"""Penalties R(x): l2, l1, elastic net, and the indicators of an l2 or l1 ball.

A penalty sees the penalised coordinates only; the intercept never reaches it. In the objective it
is multiplied by alpha, except that an indicator does not change when multiplied.

To add a penalty, subclass `Penalty`, make it a frozen dataclass of its parameters, each with a
default, and put it into `PENALTIES`, from inside or outside the library:
`PENALTIES["mine"] = Mine`. It then goes by that name wherever a penalty does, is solved through its
prox, and the law tests pick it up from there.
"""

from safesift.penalties.balls import L1Ball, L2Ball
from safesift.penalties.base import Penalty, Subgradient
from safesift.penalties.norms import L1, L2, ElasticNet

__all__ = ["L1", "L2", "PENALTIES", "ElasticNet", "L1Ball", "L2Ball", "Penalty", "Subgradient"]

PENALTIES: dict[str, type[Penalty]] = {
    "l2": L2,
    "l1": L1,
    "elastic_net": ElasticNet,
    "l2_ball": L2Ball,
    "l1_ball": L1Ball,
}
