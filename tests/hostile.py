"""Tables whose names and cells want to be more than text."""

from __future__ import annotations

import numpy as np
import pandas as pd

ATTACKS = (
    "<script>window.harmed = true</script>",
    "<img src=x onerror='window.harmed = true'>",
    "</script><script>window.harmed = true</script>",
    '"><svg onload="window.harmed=true">',
    "javascript:window.harmed=true",
    "<!--",
    "]]>",
    "&lt;b&gt;",
    "\u202e\u2028\u2029\x00\x1b",
    "{{7*7}} ${7*7}",
)


def hostile_frame(n: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    """Features, and a frame with more columns, in which names, cells and labels are attacks."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, len(ATTACKS))), columns=[*ATTACKS])
    y = np.where(X[ATTACKS[0]] + 0.5 * rng.normal(size=n) > 0, ATTACKS[1], ATTACKS[2])
    return X, y


def with_texts(X: pd.DataFrame) -> pd.DataFrame:
    """The same with cells of text."""
    return X.assign(**{"cells <b>": [ATTACKS[k % len(ATTACKS)] for k in range(len(X))]})
