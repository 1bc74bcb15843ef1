"""Hard-example mining: the few rows of a large pool that can matter, and the proof for the rest.

The full problem P has the training rows and all rows of the pool, labelled as one class, with the
divisor W of them all. K is the training rows and some rows of the pool, P_K the same sum over K
only, *with the same W*. Losses are ≥ 0 and 0 where they are flat, so P_K ≤ P.

**Theorem.** Let B contain every minimiser of P_K, of which there is one, and let every row outside
K lie strictly inside a flat piece of its loss for all x in B. Then P and P_K have the same
minimisers and the same least value. Where the rows outside K are flat at a point x₀ as well, a
duality gap of P_K at x₀ is one of P.

*Proof.* For x a minimiser of P_K, x ∈ B, so the rows outside K have loss 0 there and
P(x) = P_K(x) = min P_K ≤ min P: x is a minimiser of P. Conversely P_K(y) ≤ P(y) = min P = min P_K
for a minimiser y of P. And P(x₀) = P_K(x₀), while a dual point of P_K, with 0 for the rows outside
(f*(0) = −inf f = 0), is one of P of the same value. ∎

So only the last pass over the pool has to prove anything, about regions of a small problem, and
whatever chose K before it may guess:

    pool → blocks (`pool`) → bounds over a region of P_K (`working`) → flat, or held (`held`)
         → P_K again → … until a pass finds nothing new (`mine`).
"""

from safesift.estimators.mining.mine import mine_hard
from safesift.estimators.mining.result import MiningPass, MiningResult

__all__ = ["MiningPass", "MiningResult", "mine_hard"]
