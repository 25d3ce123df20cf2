"""What goes wrong for people, said so that they can mend it."""

import difflib
from collections.abc import Iterable

LONGEST = 2000  # characters of a message; a path has room in it


class InputError(ValueError):
    """The input, an argument or a file is wrong; the message names it and says what to do, in one printable line."""

    def __init__(self, message: object) -> None:
        super().__init__(printable(str(message)[:LONGEST]))


class Unsuitable(InputError):
    """The method cannot take this kind of data, but others can: where several run, this one is left out."""


class NotNumbers(InputError, TypeError):
    """X holds things that are no numbers; scikit-learn expects a ``TypeError`` there."""


class Busy(InputError):
    """Another process is at work on the same run."""


class HealthWarning(UserWarning):
    """Training goes in a direction that does not end well; the message says what to try."""


class Diverged(RuntimeError):
    """The loss is no longer a finite number, and smaller steps did not help."""


class PeerLost(RuntimeError):
    """Another process of the job has ended, or cannot be reached."""


def printable(text: str) -> str:
    r"""A text in one line that does nothing to a terminal: a file may be named ``a\nb`` or hold control characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def reason(error: BaseException) -> str:
    """The beginning of what a library says, or the kind of its error if it says nothing."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def shown(value: object) -> str:
    """A value that was given, cut if it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def unknown(kind: str, name: object, known: Iterable[str]) -> InputError:
    """The error for a name that does not exist, with the nearest one that does."""
    names = sorted(known)
    near = difflib.get_close_matches(str(name)[:80], names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(names)}"
    return InputError(f"unknown {kind} {shown(name)}: {hint}")
