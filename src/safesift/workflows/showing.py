"""How results show themselves: in a line, in a notebook, as a page for somebody else.

Pictures and pages are made by a higher layer, which is asked for them by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safesift.arithmetic.printing import Brief
from safesift.registry import provided


class Shown(Brief):
    """A result that a notebook shows as a headline, a bar of samples and a few facts."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return provided("card_html")(self)


class Reported(Shown):
    """A result of which a page can be written."""

    __slots__ = ()

    def report(
        self, path: str | Path, data: Any = None, *, also: Sequence[Any] = (), proof: Any = None
    ) -> Path:
        """Write a page for somebody who did not run the code.

        One HTML file that needs nothing else, neither a network nor a server: what was asked, what
        is proved and how strongly, which samples matter most, which labels are doubtful, which
        features count, and how to come to the same result. See docs/reports.md.

        Parameters
        ----------
        path : str or Path
            The file, .html; an older one is replaced.
        data : frame, or array of shape (n_samples, n_columns), optional
            What to show of the samples: your own table, with names, texts and columns that are no
            features. By default the features that matter most.
        also : sequence of ScreeningResult, LeaveOneOut or PathResult, default=()
            Further results about the same samples, for a page about all of them: labels are
            doubted by the models that did not see them, and alpha is chosen with a slider.
        proof : str or Path, optional
            The file that `write_proof` wrote, to be named on the page with its hash.

        Returns
        -------
        Path
            Of the page.
        """
        if not isinstance(also, Sequence):
            raise TypeError(f"also is a {type(also).__name__}: pass a list of results.")
        return provided("write_report")([self, *also], path, data=data, proof=proof)
