"""Errors and warnings that users see, worded so that they can fix them."""

import difflib
from collections.abc import Iterable
from typing import Self

LONGEST = 2000  # characters of a message, enough for a path


class InputError(ValueError):
    """A wrong input, argument or file; the message names it and says what to do, in one printable line.

    ``parameters`` are those to change. The message ends with them as Python writes them, ``(drop=...)``; ``text`` is
    the message without them, for interfaces that have their own names for them.
    """

    def __init__(self, text: object, *parameters: str) -> None:
        self.text, self.parameters = printable(str(text)[:LONGEST]), parameters
        hint = f" ({', '.join(f'{name}=...' for name in parameters)})" if parameters else ""
        super().__init__(self.text + hint)

    def within(self, where: object) -> Self:
        """The same error, with the file or method it is about in front."""
        return type(self)(f"{where}: {self.text}", *self.parameters)


class Unsuitable(InputError):
    """The method cannot handle this kind of data; where several methods run, this one is left out."""


class NotNumbers(InputError, TypeError):
    """X contains something other than numbers; scikit-learn expects a ``TypeError``."""


class Busy(InputError):
    """Another process is using the same run."""


class Note(str):
    """Something people should know about their data, and the parameters that would change it."""

    parameters: tuple[str, ...]

    def __new__(cls, text: str, *parameters: str) -> Self:
        note = super().__new__(cls, text)
        note.parameters = parameters
        return note


class HealthWarning(UserWarning):
    """Training is heading for a bad result; the message says what to try."""


class Diverged(RuntimeError):
    """The loss became NaN or infinite, and smaller steps did not help."""


class PeerLost(RuntimeError):
    """Another process of the job has ended, or cannot be reached."""


def printable(text: str) -> str:
    r"""A text as one line without control characters: a file may be named ``a\nb`` or worse."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def reason(error: BaseException) -> str:
    """The beginning of a library's error message, the system's own words, or else the error's type."""
    text = (isinstance(error, OSError) and error.strerror) or str(error)
    return " ".join(text.split())[:200] or type(error).__name__


def shown(value: object) -> str:
    """A value from the user, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def counted(n: int, thing: str) -> str:
    """A number of things: 1 cluster, 2 clusters."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def nearest(name: object, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The known name that is most like this one, in capitals or not, if any is."""
    folded = {one.casefold(): one for one in known}
    near = difflib.get_close_matches(str(name)[:80].casefold(), folded, n=1, cutoff=cutoff)
    return folded[near[0]] if near else None


def unknown(kind: str, name: object, known: Iterable[str]) -> InputError:
    """The error for an unknown name, with the closest known one."""
    names = sorted(known)
    near = nearest(name, names)
    hint = f"did you mean {near!r}?" if near else f"choose from {', '.join(names)}"
    return InputError(f"unknown {kind} {shown(name)}: {hint}")
