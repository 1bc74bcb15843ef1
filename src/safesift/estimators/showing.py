"""How fitted estimators show themselves in a notebook."""

from __future__ import annotations

from typing import Any

from safesift.registry import provided


class ShowsFit:
    """Adds what is proved of a fit to the picture that scikit-learn draws of an estimator.

    To be named before `BaseEstimator`.
    """

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + self._card()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._card()
        return bundle

    def _card(self) -> str:
        return provided("card_html")(self) if hasattr(self, "dual_gap_") else ""
