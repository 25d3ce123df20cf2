"""Group the rows of a table when nobody knows how many groups there are: pandas in, pandas out.

python examples/table.py           # scikit-learn's wines
python examples/table.py FILE.csv  # your table, as ``lsdc fit`` reads it
"""

import sys

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

import lsdc


def wines() -> pd.DataFrame:
    """178 wines by 13 measurements, a name for each, every column divided by its standard deviation."""
    X = load_wine(as_frame=True).data
    return (X / X.std()).set_axis([f"wine {i + 1}" for i in range(len(X))])


def main(file: str | None = None) -> pd.DataFrame:
    """Count the groups, find them, and show the sizes and the rows that fit least well."""
    data = lsdc.open_data(file) if file else wines()
    names = data.index if isinstance(data, pd.DataFrame) else data.ids
    found = lsdc.suggest_k(data)
    print(f"suggested: {found.in_words()}")
    model = lsdc.LSDC(n_clusters=max(2, found.n_clusters), random_state=0).fit(data)
    p = np.sort(model.predict_proba(data), axis=1)
    result = pd.DataFrame({"cluster": model.labels_, "confidence": p[:, -1], "second": p[:, -2]}, index=names)
    print(result.groupby("cluster").confidence.agg(["size", "mean"]).round(2).to_string())
    print("least sure:", ", ".join(map(str, result.confidence.nsmallest(3).index)))
    return result


if __name__ == "__main__":
    main(*sys.argv[1:2])
