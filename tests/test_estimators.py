"""The contract of every method in METHODS: scikit-learn's own checks, and ours."""

import json
import pickle
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import lsdc
from lsdc import FINCH, LSDC, METHODS, HealthWarning, InputError, KMeans
from lsdc.data.datasets import Dataset
from lsdc.functional import knn
from lsdc.methods import dec
from lsdc.methods.base import KINDS as TAKEN
from lsdc.methods.deep import DeepEstimator
from lsdc.methods.lsdc import bind_similarity
from lsdc.metrics import clustering_accuracy
from lsdc.runs.folder import Run
from mutations import joined, parts

QUICK = {
    "lsdc": {"neighbours": "batch", "epochs": 2, "width": 0.1, "pretext_plan": {"epochs": 1}, "batch_size": 32},
    "kmeans": {"n_init": 2},
    "umap": {"n_epochs": 20, "n_init": 1},
    "finch": {},
    "dec": {"epochs": 2, "width": 0.05, "pretext_plan": {"epochs": 2}, "batch_size": 32},
    "idec": {"epochs": 2, "width": 0.05, "pretext_plan": {"epochs": 2}, "batch_size": 32},
    "vade": {"epochs": 2, "width": 0.05, "pretext_plan": {"epochs": 2}, "batch_size": 32},
    "imsat": {"epochs": 2, "width": 0.05, "batch_size": 32},
    "dac": {"epochs": 2, "width": 0.1, "batch_size": 32},
    "iic": {"epochs": 2, "width": 0.1, "batch_size": 32},
    "jule": {"epochs": 2, "width": 0.1, "batch_size": 32},
    "deepcluster": {"epochs": 2, "width": 0.1, "batch_size": 32},
}
DEEP = [name for name in METHODS if issubclass(METHODS[name], DeepEstimator)]
every_method = pytest.mark.parametrize("name", METHODS)
every_deep_method = pytest.mark.parametrize("name", DEEP)
pytestmark = [
    pytest.mark.filterwarnings("ignore::lsdc.HealthWarning"),  # two epochs leave clusters unborn
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),  # and codes that are all alike
]


def quick(name, n_clusters=3, **params):
    return METHODS[name](**({"n_clusters": n_clusters, "random_state": 0} | QUICK[name] | params))


def blobs(n=90, d=5, centers=3):
    X, y = make_blobs(n, d, centers=centers, random_state=0)
    return X.astype(np.float32), y


def grey_images(n=40, side=8):
    return np.random.default_rng(0).integers(0, 255, (n, side, side)).astype(np.uint8)


def texts(n=30):
    words = ["cat dog pet fur", "stock bond market price", "goal match team ball"]
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(words[i % 3].split(), 6)) for i in range(n)]


KINDS = {
    "vectors": lambda: blobs()[0],
    "doubles": lambda: blobs()[0].astype(np.float64),
    "whole numbers": lambda: (blobs()[0] * 10).astype(np.int64),
    "sparse": lambda: sp.csr_matrix(blobs()[0] * (blobs()[0] > 0)),
    "tensor": lambda: torch.from_numpy(blobs()[0]),
    "list": lambda: blobs()[0].tolist(),
    "images": grey_images,
    "float images": lambda: grey_images().astype(np.float64) / 255,
    "colour images": lambda: np.random.default_rng(0).random((40, 9, 8, 3)),
    "channels first": lambda: np.random.default_rng(0).random((40, 3, 8, 8)).astype(np.float32),
    "image tensor": lambda: torch.from_numpy(grey_images()),
    "texts": texts,
}


def suits(name, kind):
    """Whether a method takes a kind of data."""
    what = {"sparse": "sparse vectors", "texts": "texts"}.get(kind, "images" if "image" in kind else "dense vectors")
    return ("images" if kind == "channels first" else what) in METHODS[name].takes


SUITED = [(name, kind) for name in METHODS for kind in KINDS if suits(name, kind)]
UNSUITED = [(name, kind) for name in METHODS for kind in KINDS if not suits(name, kind)]
# enough training for scikit-learn's own blobs, and no more
THOROUGH = {
    "lsdc": {"epochs": 40, "pretext": "none", "width": 0.1},
    "kmeans": {"n_init": 2},
    "umap": {},
    "finch": {},
    "dec": {"pretext_plan": {"epochs": 20}, "width": 0.05, "epochs": 5},
    "idec": {"pretext_plan": {"epochs": 20}, "width": 0.05, "epochs": 5},
    "vade": {"pretext_plan": {"epochs": 200}, "width": 0.05, "epochs": 5},
    "imsat": {"epochs": 20, "width": 0.05},
    "dac": {"epochs": 30, "width": 0.05},
    "iic": {"epochs": 20, "width": 0.05},
    "jule": {"epochs": 2, "width": 0.1},
    "deepcluster": {"epochs": 5, "width": 0.1},
}


# no more training than it takes to be fitted, in whole batches, for all that asks for no clusters
TINY = {name: params | ({"epochs": 1, "batch_size": "auto"} if name in DEEP else {}) for name, params in QUICK.items()}


def expected_failures(estimator):
    """The checks of scikit-learn that cannot hold, with the reason."""
    reason = "takes whatever has predict_proba for a classifier and asks for its classes (AttributeError in the check)"
    failed = ("check_estimator_sparse_array", "check_estimator_sparse_matrix")
    return dict.fromkeys(failed, reason) if "sparse vectors" in estimator.takes else {}


@parametrize_with_checks(
    [*(METHODS[name](**TINY[name]) for name in METHODS), FINCH(metric="l2")],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn(estimator, check):
    """All checks with little training, but for the one that wants the clusters found."""
    if check.func.__name__ == "check_clustering":
        estimator = METHODS[estimator.method](**{**estimator.get_params(), **THOROUGH[estimator.method]})
    check(estimator)


@pytest.mark.parametrize(("name", "kind"), UNSUITED)
def test_data_that_a_method_cannot_take_is_refused_in_one_line(name, kind):
    with pytest.raises(InputError, match=rf"{name} takes .*, not .*; methods that do: .*lsdc.*kmeans") as caught:
        quick(name).fit(KINDS[kind]())
    assert "\n" not in str(caught.value)


def test_every_kind_that_is_taken_exists():
    assert {kind for method in METHODS.values() for kind in method.takes} == set(TAKEN)


@pytest.mark.parametrize(("name", "kind"), SUITED)
def test_every_kind_of_data(name, kind):
    X = KINDS[kind]()
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    model = quick(name)
    labels = model.fit_predict(X)
    assert labels.shape == (n,)
    assert set(np.unique(labels)) <= {0, 1, 2}
    assert np.array_equal(model.predict(X), labels)
    p = model.predict_proba(X)
    assert p.shape == (n, 3)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)
    assert len(model.transform(X)) == n
    assert np.array_equal(p.argmax(1), model.labels_)


@every_method
def test_same_seed_same_labels_to_the_bit(name):
    X, _ = blobs()
    first, second = (quick(name).fit(X) for _ in range(2))
    assert np.array_equal(first.predict_proba(X), second.predict_proba(X))
    for a, b in zip(first.history_, second.history_, strict=True):
        assert {**a, "seconds": 0} == {**b, "seconds": 0}


def test_workers_change_nothing():
    X, _ = blobs()
    results = [quick("lsdc", n_workers=n).fit(X) for n in (0, 1, 4)]
    for other in results[1:]:
        assert np.array_equal(other.predict_proba(X), results[0].predict_proba(X))
        assert [r["loss"] for r in other.history_] == [r["loss"] for r in results[0].history_]


def test_another_seed_is_another_start():
    X, _ = blobs()
    first, second = (clone(quick("lsdc")).set_params(random_state=seed).fit(X) for seed in (0, 1))
    assert not np.array_equal(first.predict_proba(X), second.predict_proba(X))


@every_method
def test_the_callers_random_state_is_left_alone(name):
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    wanted = torch.rand(1), np.random.rand()  # noqa: NPY002
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    quick(name).fit(blobs()[0])
    assert (torch.rand(1), np.random.rand()) == wanted  # noqa: NPY002


@pytest.mark.parametrize(
    ("name", "kind"), [case for case in SUITED if case[1] in ("vectors", "images", "colour images", "texts", "sparse")]
)
def test_saved_models_predict_the_same_to_the_bit(name, kind, tmp_path):
    X = KINDS[kind]()
    model = quick(name).fit(X)
    model.save(tmp_path / "model.safetensors")
    loaded = lsdc.load(tmp_path / "model.safetensors")
    assert type(loaded) is type(model)
    assert (
        loaded.get_params() == json.loads(json.dumps(model.get_params())) or loaded.get_params() == model.get_params()
    )
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(loaded.transform(X), model.transform(X))
    assert np.array_equal(loaded.labels_, model.labels_)
    assert loaded.history_ == model.history_
    assert loaded.n_features_in_ == model.n_features_in_
    assert loaded.n_clusters_ == model.n_clusters_ == 3


# what test_figures.py asks of the defaults, with smaller networks and no longer than needed
ENOUGH = {
    **{key: {} for key in ("kmeans", "finch", "umap")},
    "lsdc": {"width": 0.1, "epochs": 20},
    "deepcluster": {"width": 0.1, "epochs": 5},
    **{key: {"width": 0.1, "pretext_plan": {"epochs": 200}} for key in ("dec", "idec", "vade")},
}


@every_method
def test_easy_blobs_are_found_and_new_data_is_labelled_like_its_kind(name):
    X, y = blobs(300)
    model = METHODS[name](3, random_state=0, **ENOUGH.get(name, {"width": 0.1})).fit(X[:200])
    assert clustering_accuracy(y[:200], model.labels_) > 0.95
    assert clustering_accuracy(y[200:], model.predict(X[200:])) == 1.0


GRAPHS = {
    "images": (grey_images(), {"width": 0.1, "pretext_plan": {"epochs": 1}, "batch_size": 32}),
    "embeddings": (np.random.default_rng(0).normal(size=(60, 40)), {}),
}


@pytest.mark.parametrize("kind", GRAPHS)
def test_the_contract_holds_on_a_neighbour_graph(kind, tmp_path):
    """The default where it is not labels within a batch, which the other tests of this file look at."""
    X, few = GRAPHS[kind]
    params = {"neighbours": "graph", "n_init": 2, "epochs": 1, "random_state": 0, **few}
    model = LSDC(3, **params).fit(X, run=tmp_path / "run")
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)
    assert np.array_equal(p.argmax(1), model.labels_)
    for other in (lsdc.load(tmp_path / "run"), pickle.loads(pickle.dumps(model)), LSDC(3, **params).fit(X)):
        assert np.array_equal(other.predict_proba(X), p)
        assert np.array_equal(other.transform(X), model.transform(X))


LABELLING = ("similarity", "k", "tau", "temperature", "space", "pool")
ARCHITECTURE = ("backbone", "width", "head", "n_frozen", "augment")


@pytest.mark.parametrize(("X", "params"), [(blobs()[0], QUICK["lsdc"]), (GRAPHS["embeddings"][0], {"epochs": 1})])
def test_models_of_format_1_are_read(X, params, tmp_path):
    """The settings of LSD-C were in groups there; k in the labels was not that of the graph."""
    model = LSDC(3, random_state=0, **params).fit(X)
    model.save(tmp_path / "new")
    outer, inner, data = parts((tmp_path / "new").read_bytes())
    flat = inner["settings"]
    graph = {name: flat.pop(name) for name in ("k", "walk", "n_init")}
    on_graph = flat.pop("neighbours") == "graph"
    flat["labelling"] = {"k": None if on_graph else graph["k"]} | {n: flat.pop(n) for n in LABELLING if n != "k"}
    flat["architecture"] = {name: flat.pop(name) for name in ARCHITECTURE}
    inner |= {"format": 1, "settings": {**flat, **({"graph": graph} if on_graph else {})}}
    (tmp_path / "old").write_bytes(joined(outer, inner, data))
    loaded = lsdc.load(tmp_path / "old")
    assert loaded.settings_ == model.settings_
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


@every_method
def test_works_in_a_pipeline(name):
    X, _ = blobs()
    labels = make_pipeline(StandardScaler(), quick(name)).fit_predict(X)
    assert np.array_equal(labels, quick(name).fit_predict(StandardScaler().fit_transform(X)))


@every_method
def test_run_folders_hold_everything(name, tmp_path):
    X, _ = blobs()
    model = quick(name).fit(X, run=tmp_path / "run")
    files = {p.name for p in (tmp_path / "run").iterdir()}
    assert {"config.json", "environment.json", "labels.csv", "model.safetensors"} <= files
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["method"] == name
    assert config["params"]["n_clusters"] == 3
    lines = (tmp_path / "run" / "labels.csv").read_text().splitlines()
    assert lines[0].startswith("id,cluster,confidence")
    assert [int(line.split(",")[1]) for line in lines[1:]] == model.labels_.tolist()
    assert np.array_equal(lsdc.load(tmp_path / "run").predict(X), model.labels_)


@every_deep_method
def test_resuming_an_interrupted_fit_is_bit_exact(name, tmp_path, monkeypatch):
    """In the middle of an epoch: the state is kept after every step, and whatever the epoch was prepared with."""
    X, _ = blobs(130)  # four steps an epoch
    monkeypatch.setattr(dec, "CHANGED", -1.0)  # else it is done at once
    settings = {"epochs": 4, "pretext_plan": {"epochs": 2}}
    settings |= {"pretext": "autoencoder"} if "pretext" in METHODS[name]().get_params() else {}
    whole = quick(name, **settings).fit(X)
    for stage, epoch in (("pretext", 1), ("clustering", 1), ("clustering", 3)):

        def stop(progress, stage=stage, epoch=epoch):
            if (progress.stage, progress.epoch, progress.step) == (stage, epoch, 3):
                raise KeyboardInterrupt

        run = Run.create(tmp_path / f"{stage}{epoch}")
        run.interval = 0.0
        with pytest.raises(KeyboardInterrupt):
            quick(name, **settings).fit(X, run=run, monitor=stop)
        assert run.read_checkpoint(stage).step == 2
        resumed = quick(name, **settings).fit(X, resume=run.path)
        assert np.array_equal(resumed.predict_proba(X), whole.predict_proba(X))
        assert [r["loss"] for r in resumed.history_] == [r["loss"] for r in whole.history_]


def test_resuming_with_other_data_is_refused(tmp_path):
    X, _ = blobs()
    quick("lsdc").fit(X, run=tmp_path / "run")
    with pytest.raises(InputError, match="other settings or data"):
        quick("lsdc").fit(X + 1, resume=tmp_path / "run")


@pytest.mark.parametrize(("name", "kind"), [case for case in SUITED if case[0] == "lsdc" or "colour" in case[1]])
def test_fitted_models_can_be_pickled(name, kind):
    """By people's own tools, such as joblib; lsdc itself never reads a pickle."""
    X = KINDS[kind]()
    model = quick(name).fit(X)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))


@every_method
def test_a_refused_fit_leaves_the_model_as_it_was(name):
    X, _ = blobs()
    model = quick(name).fit(X)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="device"):
        model.set_params(device="gpu").fit(X * 5 + 100)
    model.set_params(device="cpu")
    assert np.array_equal(model.predict_proba(X), before)
    fresh = quick(name, device="gpu")
    with pytest.raises(ValueError, match="device"):
        fresh.fit(X)
    with pytest.raises(NotFittedError):
        fresh.predict(X)


def test_a_drawn_seed_is_kept(tmp_path):
    """Without a seed one is drawn; the run and the model know it, and resuming goes on with it."""
    X, _ = blobs()
    model = quick("lsdc", random_state=None).fit(X, run=tmp_path / "run")
    again = quick("lsdc", random_state=lsdc.load(tmp_path / "run").random_state).fit(X)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    resumed = quick("lsdc", random_state=None).fit(X, resume=tmp_path / "run")
    assert resumed.seed_ == model.seed_
    assert np.array_equal(resumed.predict_proba(X), model.predict_proba(X))


def test_a_refused_resume_changes_nothing(tmp_path):
    X, _ = blobs()
    quick("lsdc").fit(X, run=tmp_path / "run")
    before = (tmp_path / "run" / "config.json").read_bytes()
    with pytest.raises(InputError, match="other settings or data"):
        quick("lsdc", epochs=3).fit(X, resume=tmp_path / "run")
    assert (tmp_path / "run" / "config.json").read_bytes() == before


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_empty_clusters_of_the_final_labels_are_said():
    with pytest.warns(HealthWarning, match="of 9 clusters are"):
        KMeans(9, random_state=0).fit(np.repeat(np.eye(3), 20, axis=0))


BAD_X = {
    "NaN": (lambda X: np.where(np.arange(90)[:, None] == 7, np.nan, X), r"NaN in row 7"),
    "infinite": (lambda X: np.where(np.arange(90)[:, None] == 8, np.inf, X), r"infinity in row 8"),
    "empty": (lambda X: X[:0], r"0 sample"),
    "no features": (lambda X: X[:, :0], r"0 feature"),
    "one sample": (lambda X: X[:1], r"1 sample"),
    "fewer than clusters": (lambda X: X[:2], r"n_clusters=3 is more than the 2 samples"),
    "constant": (np.ones_like, r"constant"),
    "one dimension": (lambda X: X[:, 0], r"Expected 2D array|1D array"),
    "five dimensions": (lambda X: X.reshape(2, 9, 5, 5, 1), r"images must be"),
    "complex": (lambda X: X.astype(complex), r"Complex data"),
    "dates": (lambda X: X.astype("datetime64[s]"), r"dates or times"),
    "too large": (lambda X: X.astype(np.float64) * 1e39, r"beyond single precision"),
    "words": (lambda X: np.array([["a", "b"]] * 9, object), r"could not convert string|dtype"),
    "objects": (lambda X: np.array([[{}, 1]] * 9, object), r"float\(\) argument|must be a string or a real number"),
    "tiny images": (lambda X: np.zeros((9, 4, 4)), r"at least 8x8"),
    "odd channels": (lambda X: np.zeros((9, 8, 8, 7)), r"1, 3 or 4 channels"),
    "image NaN": (lambda X: np.full((9, 8, 8), np.nan), r"NaN in row 0"),
    "image words": (lambda X: np.full((9, 8, 8), "a"), r"dtype"),
    "empty texts": (lambda X: ["", " "] * 5, r"but no words"),
}


@every_method
@pytest.mark.parametrize("what", BAD_X)
def test_bad_data_is_refused_by_name(name, what):
    change, message = BAD_X[what]
    with pytest.raises((ValueError, TypeError), match=message):
        quick(name).fit(change(blobs()[0]))


@every_method
@pytest.mark.parametrize("value", [0, -1, 1.5, "3", None, True])
def test_n_clusters_must_count(name, value):
    model = quick(name, n_clusters=value)
    if value is None and METHODS[name].finds_n_clusters:
        assert model.fit(blobs()[0]).n_clusters_ >= 1
        return
    with pytest.raises(ValueError, match="n_clusters must be a whole number"):
        model.fit(blobs()[0])


BAD_PARAMS = {
    "similarity": ("knm", r"unknown similarity 'knm': did you mean 'knn'\?"),
    "composition": ("ricup", r"unknown composition 'ricup': did you mean 'ricap'\?"),
    "pretext": ("rotnett", r"unknown pretext 'rotnett': did you mean 'rotnet'\?"),
    "backbone": ("resnet", r"unknown backbone 'resnet': did you mean 'resnet18'\?"),
    "augment": ("affin", r"unknown augment 'affin': did you mean 'affine'\?"),
    "head": ("liner", r"unknown head 'liner': did you mean 'linear'\?"),
    "space": ("feature", r"space: .*'features'"),
    "optimizer": ("sdg", r"optimizer: .*'sgd'"),
    "schedule": ("step", r"schedule: .*'steps'"),
    "n_workers": (-1, r"n_workers must be a whole number of at least 0"),
    "milestones": ("x", r"milestones: .*got 'x'"),
    "warmup": (-1, r"warmup: .*got -1"),
    "k": (32, r"k=32 must be smaller than the batch of 32"),
    "epochs": (-1, r"epochs: .*got -1"),
    "batch_size": (0, r"batch_size: .*got 0"),
    "lr": (0.0, r"lr: .*got 0"),
    "lr ": (float("inf"), r"lr: .*got inf"),
    "batch_size ": (1, r"batch_size: .*got 1"),
    "width": (-1, r"width: .*got -1"),
    "consistency": (-2, r"consistency: .*got -2"),
    "balance": ("much", r"balance: .*got 'much'"),
    "temperature": (0, r"temperature: .*got 0"),
    "pool": (-5, r"pool: .*got -5"),
    "n_frozen": (9, r"n_frozen must be between 0 and 3"),
    "pretext_plan ": (5, r"pretext_plan must be a dict"),
    "pretext_plan": ({"epoch": 3}, r"pretext_plan.epoch.*did you mean 'pretext_plan.epochs'"),
    "device": ("gpu", r"device must be"),
    "random_state": ("zero", r"random_state must be"),
}


@pytest.mark.parametrize("name", BAD_PARAMS)
def test_bad_arguments_are_named(name):
    value, message = BAD_PARAMS[name]
    with pytest.raises(ValueError, match=message) as caught:
        quick("lsdc", **{name.strip(): value}).fit(blobs()[0])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("composition", "augment"), [("ricap", "auto"), ("cutmix", "auto"), ("auto", "crop")])
def test_vectors_cannot_be_cut(composition, augment):
    with pytest.raises(InputError, match="needs images"):
        quick("lsdc", composition=composition, augment=augment).fit(blobs()[0])


@pytest.mark.parametrize("similarity", ["l2", "cosine", "sne"])
def test_without_a_threshold_as_many_pairs_are_connected_as_by_knn(similarity):
    f = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    settings = LSDC(3, similarity=similarity, k=6)._resolve((5,), 90)
    A = bind_similarity(similarity, settings)(f, 40, 0.0)
    assert A.sum() == knn(f, 6).sum()


def test_a_pretext_learns_from_unlabelled_samples_and_clustering_does_not(tmp_path):
    X, more = grey_images(40), 255 - grey_images(60)
    both = Dataset("both", X, unlabelled=more)
    model = quick("lsdc", pretext="autoencoder", batch_size=20).fit(both, run=tmp_path / "a")
    alone = quick("lsdc", pretext="autoencoder", batch_size=20).fit(X, run=tmp_path / "b")
    assert len(model.labels_) == 40
    assert not np.array_equal(model.predict_proba(X), alone.predict_proba(X))
    stored = json.loads((tmp_path / "a" / "config.json").read_text())["data"]
    assert (stored["n"], stored["pretext_n"]) == (40, 60)
    with pytest.raises(InputError, match="the model was fitted on"):
        quick("lsdc").fit(Dataset("wrong", X, unlabelled=more[:, :7, :7].repeat(2, 1).repeat(2, 2)))


@every_method
def test_other_shapes_cannot_be_predicted(name):
    vectors, pictures = (quick(name).fit(KINDS[kind]()) for kind in ("vectors", "images"))
    with pytest.raises(ValueError, match="is expecting 5 features"):
        vectors.predict(np.zeros((4, 6)))
    with pytest.raises(ValueError, match="the model was fitted on"):
        vectors.predict(grey_images())
    with pytest.raises(ValueError, match="the model was fitted on"):
        pictures.predict(grey_images(side=9))
    with pytest.raises(ValueError, match="the model was fitted on images"):
        pictures.predict(np.zeros((4, 64)))
    with pytest.raises(ValueError, match="X contains texts"):
        vectors.predict(texts())
    if suits(name, "texts"):
        with pytest.raises(ValueError, match="fitted on texts"):
            quick(name).fit(texts()).predict(np.zeros((4, 12)))


@every_method
def test_bad_model_files_are_refused(name, tmp_path):
    path = tmp_path / "model.safetensors"
    quick(name).fit(blobs()[0]).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="truncated"):
        lsdc.load(path)
    with pytest.raises(InputError, match="no such file"):
        lsdc.load(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no model in this folder"):
        lsdc.load(tmp_path / "empty")
    with pytest.raises(InputError, match="cannot write"):
        quick(name).fit(blobs()[0]).save("/proc/nowhere/model.safetensors")


OPTIONS = {
    "paper's k": {"similarity": "knn", "k": 5, "pool": 0, "weighted": False, "head": "linear"},
    "l2": {"similarity": "l2", "tau": 1.0},
    "cosine": {"similarity": "cosine", "tau": 0.9},
    "sne": {"similarity": "sne", "tau": 0.01, "temperature": 0.5},
    "prediction space": {"space": "predictions"},
    "two layers": {"head": "two-layer"},
    "no consistency": {"consistency": 0.0},
    "balance": {"balance": 0.5},
    "mixup": {"composition": "mixup"},
    "autoencoder": {"pretext": "autoencoder"},
    "frozen": {"n_frozen": 2},
    "sgd with steps": {"optimizer": "sgd", "lr": 0.05, "schedule": "steps", "milestones": (1,)},
    "adamw": {"optimizer": "adamw", "schedule": "constant"},
}


@pytest.fixture(scope="module")
def usual():
    """What comes of no option at all."""
    return quick("lsdc", pretext="none").fit(blobs()[0]).predict_proba(blobs()[0])


@pytest.mark.parametrize("what", OPTIONS)
def test_every_option_trains_and_acts(what, usual):
    model = quick("lsdc", **OPTIONS[what]).fit(blobs()[0])
    record = model.history_[-1]
    assert np.isfinite(record["loss"])
    assert {"pair", "consistency", "density", "spread", "alive", "entropy", "confident"} <= record.keys()
    assert np.abs(model.predict_proba(blobs()[0]) - usual).max() > 1e-6  # without it, 0


def test_images_train_with_every_composition_and_pretext():
    found = set()
    for composition, pretext in product(["ricap", "mixup", "cutmix", "none"], ["rotnet", "autoencoder"]):
        model = quick("lsdc", composition=composition, pretext=pretext).fit(grey_images())
        assert {r["stage"] for r in model.history_} == {"pretext", "clustering"}
        found.add(model.predict_proba(grey_images()).tobytes())
    assert len(found) == 8  # each of them acts


def test_rotnet_needs_square_images():
    with pytest.raises(InputError, match="square images"):
        quick("lsdc", pretext="rotnet").fit(np.random.default_rng(0).random((40, 8, 10)))


def test_parts_can_be_functions(tmp_path):
    from lsdc.functional import knn, none
    from lsdc.nn.mlp import mlp

    def backbone(shape, width):
        return mlp(shape, width, sizes=(11,))

    model = quick("lsdc", similarity=lambda f: knn(f, 3), composition=none, backbone=backbone, augment=lambda x, rng: x)
    X, _ = blobs()
    model.fit(X)
    model.save(tmp_path / "m.safetensors")
    with pytest.raises(InputError, match=r"a function of your own.*; pass it again: backbone=that function"):
        lsdc.load(tmp_path / "m.safetensors")
    loaded = lsdc.load(tmp_path / "m.safetensors", backbone=backbone, augment=model.augment)
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_a_dying_run_says_so():
    X, _ = blobs()
    with pytest.warns(HealthWarning, match="clusters are"):
        quick("lsdc", n_clusters=60, epochs=3).fit(X)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
def test_a_sparse_matrix_of_any_form_is_the_same_data(form):
    """A matrix in the form of a dictionary of keys is a dictionary, too, and still a matrix."""
    X = sp.csr_matrix(blobs()[0] * (blobs()[0] > 0))
    expected = KMeans(3, random_state=0).fit_predict(X)
    assert np.array_equal(KMeans(3, random_state=0).fit_predict(X.asformat(form)), expected)
