"""``lsdc suggest-k``: estimate how many clusters the data has, before fitting anything."""

import json
from typing import Annotated

import typer

from lsdc.cli.console import about_data, err, line, out, program
from lsdc.cli.importing import importing
from lsdc.cli.options import (
    DataArgument,
    ReadingOptions,
    RootOption,
    reading,
    reads_data,
    root_of,
)
from lsdc.cli.reading import ReadingBar
from lsdc.cli.wording import say_reading
from lsdc.errors import InputError


@reads_data
def suggest_k(
    context: typer.Context,
    data: DataArgument,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    data_root: RootOption = None,
    *,
    options: ReadingOptions,
) -> None:
    """Estimate how many clusters DATA has: the evidence for each number, the choice, and how sure it is.

    Example:  lsdc suggest-k photos/
    """
    with importing():
        from lsdc.data.files import open_data
        from lsdc.data.reading import Reading
        from lsdc.methods import suggest_k as suggest
        from lsdc.report.terminal import candidates_table

    with ReadingBar(err) as bar:
        dataset = open_data(data, root_of(data_root), bar, **vars(reading(Reading(), **options)))
    say_reading(dataset, context)
    try:
        found = suggest(dataset)
    except InputError as error:
        raise about_data(error, data) from None
    if as_json:
        print(json.dumps(found.as_dict()))
        return
    out.print(candidates_table(found))
    line(out, f"suggested:  {found.in_words()}")
    if found.sureness == "a guess":
        line(out, "            parts of the data disagree: try a few numbers close to it and compare the reports")
    line(out, f"next:       {' '.join(program())} fit {data} --clusters {max(2, found.n_clusters)}")
