"""Flags in ``--help`` as what they are: they take no value, so none is asked for."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class _Flags:
    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; of typer's own ``<bool>`` behind flags nothing is left."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = param.metavar or " "
        return params


class Command(_Flags, TyperCommand):
    """A command whose help shows flags as flags."""


class Group(_Flags, TyperGroup):
    """The same for the program itself."""
