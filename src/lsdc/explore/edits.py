"""Edits of clusters and what they do to the labels: pure functions from edits to a state."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from lsdc.errors import InputError

OUTLIER = -1  # the cluster of samples that belong to none, as in scikit-learn
LONGEST_NAME = 100


def _tidy(name: str) -> str:
    """A name on one line, without control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in name).split())


Cluster = Annotated[int, Field(ge=0, lt=2**40)]
Samples = Annotated[list[Annotated[int, Field(ge=0, lt=2**40)]], Field(min_length=1)]
ClusterName = Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(_tidy)]


class Change(BaseModel):
    """One step in the journal."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Name(Change):
    """Name a cluster; an empty name removes it."""

    do: Literal["name"]
    cluster: Cluster
    name: ClusterName


class Merge(Change):
    """Move all samples of a cluster into another, which keeps its name or takes over this one's."""

    do: Literal["merge"]
    cluster: Cluster
    into: Cluster


class Split(Change):
    """Turn some samples of a cluster into a new one."""

    do: Literal["split"]
    cluster: Cluster
    samples: Samples


class Move(Change):
    """Move samples to another cluster, or to a new one if ``to`` is null."""

    do: Literal["move"]
    samples: Samples
    to: Cluster | None


class Outlier(Change):
    """Mark samples as belonging to no cluster; moving them to one reverts this."""

    do: Literal["outlier"]
    samples: Samples


class Undo(Change):
    """Undo the last change."""

    do: Literal["undo"]


class Redo(Change):
    """Redo what was undone last."""

    do: Literal["redo"]


Correction = Name | Merge | Split | Move | Outlier
Edit = Annotated[Correction | Undo | Redo, Field(discriminator="do")]
EDIT: TypeAdapter[Correction | Undo | Redo] = TypeAdapter(Edit)


@dataclass(frozen=True)
class State:
    """The clusters as corrected: the label of each sample, which clusters there are, and their names."""

    labels: np.ndarray
    clusters: tuple[int, ...]
    names: Mapping[int, str] = field(default_factory=dict)
    free: int = 0  # the number of the next new cluster

    def called(self, cluster: int) -> str:
        """What to call a cluster."""
        return self.names.get(cluster) or f"cluster {cluster}"


def initial(labels: np.ndarray, n_clusters: int | None, names: Sequence[Any] = ()) -> State:
    """The clusters as the model found them, with the names in names.json."""
    n = max(n_clusters or 0, int(labels.max()) + 1)
    tidy = {i: _tidy(name)[:LONGEST_NAME] for i, name in enumerate(names[:n]) if isinstance(name, str)}
    return State(labels.astype(np.int64), tuple(range(n)), {i: name for i, name in tidy.items() if name}, n)


def applied(state: State, edit: Correction) -> State:
    """The state after a correction; ``InputError`` if it makes no sense."""
    match edit:
        case Name():
            _known(state, edit.cluster)
            others = {cluster: name for cluster, name in state.names.items() if cluster != edit.cluster}
            return replace(state, names=others | ({edit.cluster: edit.name} if edit.name else {}))
        case Merge():
            return _merged(state, _known(state, edit.cluster), _known(state, edit.into))
        case Split():
            rows = _rows(state, edit.samples)
            if (state.labels[rows] != _known(state, edit.cluster)).any():
                raise InputError(f"not all of these samples are in {state.called(edit.cluster)}")
            if len(rows) == np.count_nonzero(state.labels == edit.cluster):
                raise InputError(f"that would leave {state.called(edit.cluster)} empty")
            return _with_new(state, rows)
        case Move():
            rows = _rows(state, edit.samples)
            return _with_new(state, rows) if edit.to is None else _labelled(state, rows, _known(state, edit.to))
        case Outlier():
            return _labelled(state, _rows(state, edit.samples), OUTLIER)


def _known(state: State, cluster: int) -> int:
    if cluster not in state.clusters:
        raise InputError(f"there is no cluster {cluster}; it may have been merged")
    return cluster


def _rows(state: State, samples: list[int]) -> np.ndarray:
    rows = np.unique(np.array(samples, np.int64))
    if rows[-1] >= len(state.labels):
        raise InputError(f"there is no sample {rows[-1]}; the run has {len(state.labels)}")
    return rows


def _labelled(state: State, rows: np.ndarray, label: int) -> State:
    labels = state.labels.copy()
    labels[rows] = label
    return replace(state, labels=labels)


def _with_new(state: State, rows: np.ndarray) -> State:
    new = state.free
    return replace(_labelled(state, rows, new), clusters=(*state.clusters, new), free=new + 1)


def _merged(state: State, cluster: int, into: int) -> State:
    if cluster == into:
        raise InputError("a cluster cannot be merged with itself")
    names = {other: name for other, name in state.names.items() if other not in (cluster, into)}
    if name := state.names.get(into) or state.names.get(cluster):
        names[into] = name
    rest = tuple(other for other in state.clusters if other != cluster)
    return replace(_labelled(state, np.flatnonzero(state.labels == cluster), into), clusters=rest, names=names)


def in_words(state: State, edit: Correction) -> str:
    """What a correction does, in a few words."""
    match edit:
        case Name():
            return f"name {state.called(edit.cluster)} “{edit.name}”" if edit.name else "remove a name"
        case Merge():
            return f"merge {state.called(edit.cluster)} into {state.called(edit.into)}"
        case Split():
            return f"split {state.called(edit.cluster)}"
        case Move():
            where = "a new cluster" if edit.to is None else state.called(edit.to)
            return f"move {_counted(edit.samples)} to {where}"
        case Outlier():
            return f"mark {_counted(edit.samples)} as outlier{'s' * (len(edit.samples) > 1)}"


def _counted(samples: list[int]) -> str:
    return f"{len(samples):,} sample{'s' * (len(samples) > 1)}"


class Step(NamedTuple):
    """A correction, and what it did in a few words."""

    edit: Correction
    in_words: str


@dataclass(frozen=True)
class History:
    """The result of all edits: the state, what can be undone (last one last) and what can be redone."""

    base: State
    state: State
    done: tuple[Step, ...] = ()
    undone: tuple[Step, ...] = ()

    def then(self, edit: Any) -> "History":
        """The history after one more edit."""
        if isinstance(edit, Undo):
            if not self.done:
                raise InputError("there is nothing to undo")
            kept = self.done[:-1]
            state = reduce(applied, (step.edit for step in kept), self.base)
            return replace(self, state=state, done=kept, undone=(*self.undone, self.done[-1]))
        if isinstance(edit, Redo):
            if not self.undone:
                raise InputError("there is nothing to redo")
            last = self.undone[-1]
            return replace(self, state=applied(self.state, last.edit), done=(*self.done, last), undone=self.undone[:-1])
        step = Step(edit, in_words(self.state, edit))
        return replace(self, state=applied(self.state, edit), done=(*self.done, step), undone=())


def replayed(base: State, edits: Iterable[Any]) -> History:
    """The history after a journal's edits."""
    history = History(base, base)
    for edit in edits:
        history = history.then(edit)
    return history
