"""Parquet files as tables: columns of numbers, of texts, and of lists, which are vectors."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from lsdc.data.budget import check_memory
from lsdc.data.reading import Dataset, Reading, Table
from lsdc.data.tables import as_dataset
from lsdc.data.vectors import with_vectors
from lsdc.errors import InputError, reason

WORDS = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")


def read_parquet(path: Path, reading: Reading) -> Dataset:
    """A table in Parquet, read by pyarrow; a column of lists of numbers holds the vectors."""
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise InputError(f"{path}: reading Parquet needs pyarrow (pip install 'lsd-clusters[parquet]')") from None
    try:
        with parquet.ParquetFile(path) as file:
            _check_names(path, file.schema_arrow.names)
            _check_columns(file)
            size, words = _cost(file.metadata, file.schema)
        check_memory(path, size, "takes")
        table = parquet.read_table(path, read_dictionary=words)
    except InputError:
        raise
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: not a Parquet file ({reason(error)})") from None
    columns = {name: _values(table.column(name)) for name in table.column_names}
    return as_dataset(*with_vectors(Table(path, columns, range(1, table.num_rows + 1), "row"), reading))


def _check_names(path: Path, names: list[str]) -> None:
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise InputError(f"{path}: the column {twice[0]!r} appears twice")


def _check_columns(file: Any) -> None:
    """Begin to read each group of rows: what is wrong with its columns is raised there.

    Asked about the columns of a damaged file themselves, pyarrow ends the process (26.0: "Definition level histogram
    size mismatch", a C++ exception that nobody catches).
    """
    for group in range(file.metadata.num_row_groups):
        next(file.iter_batches(batch_size=1, row_groups=[group], use_threads=False), None)


def _cost(metadata: Any, schema: Any) -> tuple[int, list[str]]:
    """The bytes that a table takes in memory, and its columns of strings.

    Repeated values take next to no space in the file, so numbers are counted one by one, and strings are read as a
    dictionary, which holds each of them once.
    """
    words = [schema.column(i).path for i in range(len(schema)) if schema.column(i).physical_type in WORDS]
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
    encoded = sum(chunk.total_uncompressed_size for chunk in chunks if chunk.physical_type in WORDS)
    return 8 * sum(chunk.num_values for chunk in chunks) + encoded, words


def _values(column: Any) -> Any:
    """A column of numbers as an array, of vectors as a matrix, of anything else as a list."""
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        return [value for chunk in column.chunks for value in _looked_up(chunk)]
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        is_vector = types.is_floating(kind.value_type) or types.is_integer(kind.value_type)
        return _vectors(column) if is_vector else column.to_pylist()
    is_number = types.is_floating(kind) or types.is_integer(kind)
    return column.to_numpy() if is_number and not column.null_count else column.to_pylist()


def _looked_up(chunk: Any) -> list[Any]:
    """The values of a dictionary-encoded column, each held once however often it occurs."""
    known = chunk.dictionary.to_pylist()
    return [None if i is None else known[i] for i in chunk.indices.to_pylist()]


def _vectors(column: Any) -> Any:
    """Lists of one length as the rows of a matrix, others as they are."""
    import pyarrow.compute as compute

    lengths = compute.list_value_length(column).fill_null(0).to_numpy()
    values = compute.list_flatten(column)
    if not len(lengths):
        return np.empty((0, 1))
    if lengths.min() != lengths.max() or not lengths[0] or values.null_count:
        return column.to_pylist()
    return np.asarray(values.to_numpy()).reshape(len(lengths), int(lengths[0]))
