"""Mends what the API reference makes of our docstrings: several parameters on a line, and names in braces."""

from typing import Any

import griffe


class Parameters(griffe.Extension):
    """The default of each parameter is its own, not that of the first on its line; "crop-flip" is no difference."""

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        for section in cls.docstring.parsed if cls.docstring else ():
            if isinstance(section, griffe.DocstringSectionParameters):
                for parameter in section.value:
                    self._mend(parameter, cls)

    def _mend(self, parameter: griffe.DocstringParameter, cls: griffe.Class) -> None:
        if parameter.name in cls.parameters:
            parameter.value = str(cls.parameters[parameter.name].default)
        if parameter.annotation is not None:
            parameter.annotation = str(parameter.annotation).replace(" - ", "-")
