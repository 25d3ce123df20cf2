"""Flags in ``--help`` shown as flags, without a value."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class _Flags:
    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, without the ``<bool>`` that typer puts after flags."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = param.metavar or " "
        return params


class Command(_Flags, TyperCommand):
    """A command whose help shows flags as flags."""


class Group(_Flags, TyperGroup):
    """The same for the program itself."""
