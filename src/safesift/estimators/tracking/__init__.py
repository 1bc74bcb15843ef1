"""Models that follow data which change a little at a time.

Data flow of an update:

    edit → rows in slots → sums Q, q, r of the edited rows → steps → certificate → fitted model

- `edits`: what the user passed, checked against what there is.
- `store`, `data`: rows lie in slots; the order in which the user sees them is a list of slots.
- `pieces`, `sums`: every row is on one piece of its loss, ½·quadratic·t² + linear·t + constant, and
  the sums Q, q and r of these over all rows are the objective, as long as rows stay where they
  are. Rounding errors of the sums are bounded as they grow.
- `follower`: one problem. It knows for every row how far the model may travel before that row can
  leave its piece, so that only rows whose time has come are read; `metric` says how far that is.
- `settle`: Newton steps to the new optimum.
- `certificate`: the duality gap, and the ball around the model that contains every optimum.
- `tracker`: the estimator.
"""

from safesift.estimators.tracking.tracker import SafeTracker

__all__ = ["SafeTracker"]
