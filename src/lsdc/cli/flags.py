"""How commands appear: flags in ``--help`` without a value, errors with the options to use."""

from typing import Any

from typer.core import TyperCommand, TyperGroup

from lsdc.cli.wording import with_options
from lsdc.errors import InputError


class _Flags:
    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, without the ``<bool>`` that typer puts after flags."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = param.metavar or " "
        return params


class Command(_Flags, TyperCommand):
    """A command whose help shows flags as flags, and whose errors name its options."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            if not error.parameters:
                raise
            raise InputError(with_options(error, ctx)) from error


class Group(_Flags, TyperGroup):
    """The same for the program itself."""
