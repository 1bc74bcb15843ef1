"""What objective, data sets and solvers share.

The peers, with their scalings and conventions, the evaluator and the loaders of the real data are
those of the race, one folder up, where they are modules beside scripts and no package. They are
imported from there, so that there is one of each. benchopt runs this file before any other of the
benchmark, in every process.
"""

import sys
from pathlib import Path

_RACE = str(Path(__file__).resolve().parents[2])
if _RACE not in sys.path:
    # first, since other packages call themselves `datasets` as well
    sys.path.insert(0, _RACE)
