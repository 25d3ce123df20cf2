"""What goes wrong for people, said so that they can mend it."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """The input, an argument or a file is wrong; the message names it and says what to do."""


class HealthWarning(UserWarning):
    """Training goes in a direction that does not end well; the message says what to try."""


def unknown(kind: str, name: object, known: Iterable[str]) -> InputError:
    """The error for a name that does not exist, with the nearest one that does."""
    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(names)}"
    return InputError(f"unknown {kind} {name!r}: {hint}")
