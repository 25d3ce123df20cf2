"""What the layers below say, with the options that go with it: they know parameters, only this layer knows options."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from lsdc.cli.console import err, line
from lsdc.errors import InputError, Note

if TYPE_CHECKING:
    from lsdc.data.reading import Dataset

OPTIONS = {  # the option for each parameter that an error or a note may name
    "array": "--array",
    "column": "--column",
    "columns": "--columns",
    "drop": "--drop",
    "encoder": "--encoder",
    "encoder_settings": "--encoder-set",
    "host": "--host",
    "id_column": "--id-column",
    "overwrite": "--overwrite",
    "port": "--port",
    "resume": "--resume",
    "run": "--out",
    "scale": "--scale/--no-scale",
    "text_encoder": "--text-encoder",
}


def with_options(message: InputError | str, context: typer.Context) -> str:
    """An error or a note for the user of a command, with the options to use."""
    if isinstance(message, InputError):
        ways = _options(message.parameters, context)
        return f"{message.text} ({', '.join(ways)})" if ways else message.text
    if not isinstance(message, Note) or not message.parameters:
        return message
    *others, last = _options(message.parameters, context)
    return f"{message}; change this with {', '.join(others)}{' or ' if others else ''}{last}"


def _options(parameters: Sequence[str], context: typer.Context) -> list[str]:
    """The options for some parameters that this command has, or those of ``lsdc fit`` if it has none of them."""
    known = {option for parameter in context.command.params for option in parameter.opts}
    options = [OPTIONS[name] for name in parameters]
    own = [option for option in options if option.partition("/")[0] in known]
    return own or [f"lsdc fit {option}" for option in options]


def say_reading(dataset: "Dataset", context: typer.Context) -> None:
    """Tell the user how DATA was read."""
    from lsdc.data.summary import about_reading

    for note in about_reading(dataset):
        line(err, with_options(note, context))
