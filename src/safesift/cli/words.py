"""What the library says, in the words of the command: options in place of arguments.

Rows are counted from 1 on the command line, as in an editor, and from 0 in Python.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

_Match = re.Match[str]


def _option(match: _Match) -> str:
    return f"--{match[1].replace('_', '-')}"


def _later_row(match: _Match) -> str:
    return f"first in row {int(match[1]) + 1}"


def _later_rows(match: _Match) -> str:
    return re.sub(r"\d+", lambda row: str(int(row[0]) + 1), match[0])


def _name(option: str, kind: str) -> str:
    """The name under which the command knows a class."""
    from safesift.losses import LOSSES
    from safesift.penalties import PENALTIES

    table: Mapping[str, type] = LOSSES if option == "loss" else PENALTIES
    names = {known.__name__: name for name, known in table.items()}
    return f"--{option} {names.get(kind, kind)}"


# what is written in Python, and what stands for it on the command line; in this order
WORDS: tuple[tuple[str, str | Callable[[_Match], str]], ...] = (
    # the data
    (r"^X contains NaN or infinity", "A feature is missing or infinite"),
    (r"^X is too large to square", "The features are too large to square"),
    (r"^y\b", "The target"),
    # files that are read a block at a time, and the row in them
    (r"(?<=: )X contains NaN or infinity", "a feature is missing or infinite"),
    (r"(?<=: )y\b", "the target"),
    (r"(?<=\(such as )(\S+) in row (\d+)", lambda match: f"{match[1]} in row {int(match[2]) + 1}"),
    (r"(?<=\()first (?:at|in row) (\d+)", _later_row),
    (r"(?<=rows )\(\d+(?:, \d+)*(?=[,)])", _later_rows),
    (r"(?<=row )\(\d+(?=\))", _later_rows),
    # what to do about them
    (r"remove or impute them first",
     "fill missing values in with --impute mean, or remove those rows"),
    (r"rescale the features first", "use --scale standard"),
    (r"scale the columns \((?:StandardScaler|scale='standard')\)", "use --scale standard"),
    (r"the columns are lower, upper", "--target names the lower ends, --upper the upper ones"),
    # the model
    (r"use a classification loss for labels", "use a --loss for labels, such as squared_hinge"),
    (r"use a regression loss, or whole numbers or strings for labels",
     "use a --loss for numbers, such as squared_epsilon_insensitive, or whole numbers or text for "
     "labels"),
    (r"use 'squared_hinge', 'hinge', 'safe_logistic' or an insensitive loss, or make the loss safe "
     r"by safesift\.make_safe",
     "use --loss squared_hinge, hinge, safe_logistic or an insensitive one"),
    (r"^(\w+)\([^)]*\)(?= is flat nowhere)", lambda match: _name("loss", match[1])),
    (r"the penalty (\w+)\([^)]*\)", lambda match: _name("penalty", match[1])),
    (r"give an l2 part to the penalty and no intercept",
     "use --no-intercept and a --penalty with an l2 part"),
    (r"pass (?:a better coef, or none|the intercept that goes with coef, or neither), and (?:the "
     r"problem|it) is solved to tol", "use --effort full"),
    (r"use the penalty 'l2', 'l1' or 'elastic_net' in its place, with the alpha that",
     "use --penalty l2, l1 or elastic_net in its place, with the --alpha that"),
    (r"ask for a smaller tol, or allow more steps by max_iter",
     "use a smaller --tol, or a larger --max-iter"),
    # arguments
    (r"\b(loss|penalty|screening|method)='([^']*)' or '([^']*)'", r"--\1 \2 or \3"),
    (r"\b(loss|penalty|screening|method)='([^']*)'", r"--\1 \2"),
    (r"\bfit_intercept=True\b", "--intercept"),
    (r"\bfit_intercept=False\b", "--no-intercept"),
    (r"\bsample_weight\b", "--weights"),
    (r"\bn_keep=", "--keep "),
    (r"; a float is a share of them", ""),
    (r"\balpha=", "--alpha "),
    (r"^Seed(?= must)", "--random-state"),
    (r"\b(alpha|mu|epsilon|width|delta|radius|l1_ratio|tol|max_iter|n_jobs|memory)\b(?= must)",
     _option),
)  # fmt: skip
_PATTERNS = [(re.compile(pattern), words) for pattern, words in WORDS]


def in_options(sentence: str) -> str:
    """A sentence of the library, in the words of the command."""
    for pattern, words in _PATTERNS:
        sentence = pattern.sub(words, sentence)
    return sentence


@contextmanager
def own_words() -> Iterator[None]:
    """What the library refuses inside the block is said in the words of the command."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ValueError(in_options(str(error))) from error


@contextmanager
def heard() -> Iterator[list[str]]:
    """What the library warns of inside the block, in the words of the command."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        # the others are for whoever writes programs, not for whoever runs them
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        yield said
    said.extend(dict.fromkeys(in_options(str(warning.message)) for warning in caught))
