"""Mends what the API reference makes of our docstrings: several parameters on a line, and names in braces."""

from collections.abc import Iterator
from typing import Any

import griffe


class Parameters(griffe.Extension):
    """The default of each parameter is its own, not that of the first on its line; "crop-flip" is no difference."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Only now inherited parameters are known."""
        for cls in classes(pkg):
            for section in cls.docstring.parsed if cls.docstring else ():
                if isinstance(section, griffe.DocstringSectionParameters):
                    for parameter in section.value:
                        mend(parameter, cls)


def classes(inside: Any) -> Iterator[griffe.Class]:
    """All classes of a package, where they are defined."""
    for member in inside.members.values():
        if not member.is_alias and (member.is_class or member.is_module):
            yield from [member] if member.is_class else classes(member)


def mend(parameter: griffe.DocstringParameter, cls: griffe.Class) -> None:
    """What the docstring's parser got wrong."""
    if parameter.name in cls.parameters:
        parameter.value = str(cls.parameters[parameter.name].default)
    if parameter.annotation is not None:
        parameter.annotation = str(parameter.annotation).replace(" - ", "-")
