"""A second look after a fit: how K-means compares, whether K is plausible, near-duplicates."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lsdc.data.datasets import Dataset
    from lsdc.runs.folder import Run


def look_again(run: "Run", dataset: "Dataset", model: Any, asked: bool) -> list[str]:
    """What to tell the user about the data after a fit, one line each; writes duplicates.csv if there are any.

    The pixels of colour images say too little about what they show, so those are skipped.
    """
    from lsdc.methods.against_kmeans import compare_with_kmeans
    from lsdc.methods.choosing import MIN_SAMPLES, doubts, features, near_duplicates

    data = model._data(dataset, reset=False)
    _, labels, _ = run.read_labels()
    said = []
    if (left := int((labels < 0).sum())) > 0:
        said.append(f"outliers: {left:,} of {len(labels):,} samples, the least certain, are left unassigned (-1)")
    if (comparison := compare_with_kmeans(model, data)) is not None:
        run.write_json("comparison.json", comparison.as_dict())
        if comparison.is_worse:
            said.append(f"doubtful: {comparison.verdict} (--seed, --method kmeans)")
    if len(data) < MIN_SAMPLES or (data.spec.is_image and data.spec.shape[0] > 1):
        return said
    f, rows = features(data, 0)
    if asked and not hasattr(model, "suggestion_"):
        said += [f"{doubt}; see lsdc suggest-k" for doubt in doubts(f, model.n_clusters_)]
    if copies := near_duplicates(f):
        from lsdc.data.spreadsheet import cell
        from lsdc.runs.atomic import write_atomic

        ids = run.read_labels()[0]
        pairs = [(ids[rows[i]], ids[rows[j]], distance) for i, j, distance in copies]
        text = "".join(f"{cell(a)},{cell(b)},{distance:.6g}\n" for a, b, distance in pairs)
        write_atomic(run.path / "duplicates.csv", ("id,like,distance\n" + text).encode(errors="backslashreplace"))
        said.append(f"near-duplicates: {len(copies):,} samples have one, e.g. {pairs[0][0]} and {pairs[0][1]}; ")
        said[-1] += f"the full list is in {run.path / 'duplicates.csv'}"
    return said
