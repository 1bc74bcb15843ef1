"""Tables, pictures and the page, from the JSON lines alone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from safesift_paper.experiments.runner import Plan
from safesift_paper.experiments.spec import Experiment, Finding, Record
from safesift_paper.experiments.tables import table

INTRODUCTION = """\
Every table and figure of *Screening Data Points in Empirical Risk Minimization via Ellipsoidal
Regions and Safe Loss Functions* (Mialon, d'Aspremont, Mairal, AISTATS 2020), run by

    safesift reproduce all

which wrote this page, too, from the JSON lines of its results. MNIST and SVHN are encoded by a
two-layer convolutional kernel network, p = 2304 as in the paper; ours differs from the authors' in
detail (their features were never published), so that numbers can be near theirs but not the same.
Splits are 80/20, repeated with the seeds given; ± is the standard deviation over them. Where a data
set could not be had, its stand-in is named as such. The paper's errors that matter here are listed
in the project's docs/errata.md."""


def section(experiment: Experiment, plan: Plan, page: Path) -> str:
    """A section of the page; the picture, where there is one, lies beside the results."""
    cells, records = plan.cells(experiment), plan.finished(experiment)
    parts = [f"## {experiment.title}"]
    if not records:
        return "\n\n".join([*parts, "Not run yet."])
    parts.append(plan.protocol(experiment).markdown(experiment, records))
    parts += [str(finding) for finding in _findings_of(experiment, plan)]
    picture = _picture(experiment, records, plan)
    if picture is not None:
        where = Path(os.path.relpath(picture, page.parent)).as_posix()
        parts.append(f"![{experiment.title}]({where})")
    if experiment.remarks and not plan.quick:
        parts.append(experiment.remarks)
    if len(records) < len(cells):
        parts.append(f"*{len(records)} of {len(cells)} cells are finished.*")
    parts.append(_small_print(records))
    return "\n\n".join(parts)


def write_page(experiments: Iterable[Experiment], plan: Plan, page: Path) -> None:
    """Write the sections of some experiments to one page."""
    head = "# The paper, reproduced" + (" (quick version)" if plan.quick else "")
    page.parent.mkdir(parents=True, exist_ok=True)
    experiments = list(experiments)
    sections = [section(experiment, plan, page) for experiment in experiments]
    parts = [head, INTRODUCTION, *_total(experiments, plan), *_findings(experiments, plan)]
    page.write_text("\n\n".join([*parts, *sections]) + "\n", encoding="utf-8")


def _total(experiments: list[Experiment], plan: Plan) -> list[str]:
    """What all cells took."""
    records = [record for experiment in experiments for record in plan.finished(experiment)]
    n_cells = sum(len(plan.cells(experiment)) for experiment in experiments)
    if not records:
        return []
    hours = sum(record.about["seconds"] for record in records) / 3600
    return [f"Of {n_cells} cells {len(records)} are finished; together they took {hours:.1f} h."]


def _findings(experiments: list[Experiment], plan: Plan) -> list[str]:
    """What the paper finds and what became of it, in one table."""
    rows = [
        [finding.claim, experiment.title.partition(":")[0], finding.verdict, finding.evidence]
        for experiment in experiments
        for finding in _findings_of(experiment, plan)
    ]
    if not rows:
        return []
    return ["## The paper's findings", table(["finding", "where", "verdict", "evidence"], rows)]


def _findings_of(experiment: Experiment, plan: Plan) -> list[Finding]:
    records = plan.finished(experiment)
    return plan.protocol(experiment).findings(records) if records else []


def _picture(experiment: Experiment, records: list[Record], plan: Plan) -> Path | None:
    figure = plan.protocol(experiment).figure(experiment, records)
    if figure is None:
        return None
    path = plan.folder / f"{experiment.name}.png"
    figure.savefig(path, dpi=90)
    return path


def _small_print(records: list[Record]) -> str:
    seconds = sum(record.about["seconds"] for record in records)
    about = records[-1].about
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    number = f"{len(records)} cell{'s' if len(records) > 1 else ''}"
    return f"<sub>{number}, {seconds:.0f} s on {about['machine']}; {versions}.</sub>"
