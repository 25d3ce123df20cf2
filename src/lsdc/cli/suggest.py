"""``lsdc suggest-k``: how many clusters some data has, before anything is fitted."""

import json
from typing import Annotated

import typer

from lsdc.cli.console import about_data, err, line, out, program
from lsdc.cli.importing import importing
from lsdc.cli.options import (
    ArrayOption,
    ColumnOption,
    ColumnsOption,
    DataArgument,
    DropOption,
    IdOption,
    RootOption,
    ScaleOption,
    SizeOption,
    reading,
    root_of,
)
from lsdc.errors import InputError


def suggest_k(
    data: DataArgument,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    data_root: RootOption = None,
    image_size: SizeOption = 32,
    column: ColumnOption = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    id_column: IdOption = None,
    scale: ScaleOption = None,
    array: ArrayOption = None,
) -> None:
    """Find out how many clusters DATA has: what speaks for which number, the choice, and how sure it is.

    Example:  lsdc suggest-k photos/
    """
    with importing():
        from lsdc.data.dataset import Reading
        from lsdc.data.files import open_data
        from lsdc.data.summary import about_reading
        from lsdc.methods import suggest_k as suggest
        from lsdc.report.terminal import candidates_table

    how = reading(Reading(image_size), column=column, columns=columns, drop=drop, id_column=id_column, array=array)
    how = reading(how, scale=scale)
    dataset = open_data(data, root_of(data_root), **vars(how))
    for said in about_reading(dataset):
        line(err, said)
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
        line(
            out, "            parts of the data disagree: try a few numbers near it, and compare what the reports show"
        )
    line(out, f"next:       {' '.join(program())} fit {data} --clusters {max(2, found.n_clusters)}")
