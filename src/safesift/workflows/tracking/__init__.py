"""Problems that follow their data as these change a little at a time.

    edit → rows in slots → sums Q, q, r of the edited rows → steps → what is proved there

* `data`: rows lie in slots (`design.slots`); the order in which the user sees them is a list of
  slots. Steps are measured by how far they move predictions.
* `pieces`: every row is on one piece of its loss, ½·quadratic·t² + linear·t + constant.
* `follower`: one problem. The sums of the pieces over all rows (`problem.running`) are the
  objective, as long as rows stay where they are. It knows for every row how far the model may
  travel before that row can leave its piece, so that only rows whose time has come are read; and
  so it knows the duality gap, and the ball around the model that contains every optimum.
* `settle`: an edit, and Newton steps to the new optimum, for all problems on the same samples.
"""

from safesift.workflows.tracking.data import Change, Data
from safesift.workflows.tracking.pieces import Classes, made_of_pieces
from safesift.workflows.tracking.settle import Tracked, Tracking

__all__ = ["Change", "Classes", "Data", "Tracked", "Tracking", "made_of_pieces"]
