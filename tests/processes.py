"""Real processes that train together over gloo, for the tests of many processes."""

import os
from datetime import timedelta
from itertools import product

import numpy as np
import torch
import torch.distributed as dist

from lsdc import LSDC, METHODS
from lsdc.cli.main import main
from lsdc.data.augment import build_views
from lsdc.data.sources import Data, spec_of
from lsdc.functional import COMPOSITIONS, SIMILARITIES, nearest
from lsdc.interrupt import Interrupt
from lsdc.methods.deep import DeepEstimator
from lsdc.methods.graph import ClassifierTraining, Fixed, starts
from lsdc.methods.graph_network import Encoder, NetworkTraining
from lsdc.methods.lsdc import LSDCLoss
from lsdc.nn.classifiers import Classifiers
from lsdc.nn.network import BACKBONES, seeded
from lsdc.pretext import PRETEXTS
from lsdc.training.context import Context
from lsdc.training.loop import Stage
from lsdc.training.plan import Plan
from victims import FORKSERVER

N, BATCH = 41, 20  # two batches; 41 and 20 leave a remainder for two and for three processes
ONE_STEP = 21  # in single precision rounding may decide who the neighbours are once the weights have moved
KINDS = {"image": (N, 1, 8, 8), "vector": (N, 12)}
CLUSTERINGS = [
    ("image", similarity, composition, "linear") for similarity in SIMILARITIES for composition in COMPOSITIONS
] + [("vector", "knn", "mixup", "normed"), ("vector", "sne", "none", "normed")]
PRETRAININGS = [(kind, name) for kind in KINDS for name in ("autoencoder", "contrastive", "rotnet")]
PRETRAININGS = [*(case for case in PRETRAININGS if case != ("vector", "rotnet")), ("vector", "stacked")]

OTHERS = [
    (kind, name, "method")
    for name in METHODS
    for kind in KINDS
    if issubclass(METHODS[name], DeepEstimator)
    and name != "lsdc"
    and (kind == "image" or "sparse vectors" in METHODS[name].takes)
]


GRAPHS = [(kind, "graph", "walks") for kind in KINDS]


def samples(kind, precise):
    X = np.random.default_rng(1).random(KINDS[kind]).astype(np.float32)
    return X if precise else X[:ONE_STEP]


class Precise(Data):
    """The same samples in double precision, in which rounding cannot hide or cause a difference."""

    def batch(self, indices):
        return super().batch(indices).double()


def staged(objective, data, plan, precise):
    if precise:  # Adam divides by the size of a gradient: in single precision rounding decides where one is nearly 0
        data, plan = Precise(data.X, data.spec), plan.model_copy(update={"optimizer": "adam", "lr": 0.01})
        objective.module.double()
    return Stage(objective, data, plan, Context(3, torch.device("cpu")))


def clustering(kind, similarity, composition, head, precise):
    """A stage of two steps, its memory in use in the second; of one in single precision."""
    X = samples(kind, precise)
    params = {"similarity": similarity, "composition": composition, "head": head, "k": 3, "pool": 3 * BATCH}
    model = LSDC(4, **params, tau={"cosine": 0.9, "l2": None, "sne": 0.05}.get(similarity), width=0.1)
    model.set_params(batch_size=BATCH, epochs=3, optimizer="sgd", lr=0.1, rampup=0, n_frozen=0)
    model.set_params(augment="crop" if kind == "image" else "noise")
    model.spec_ = spec_of(X)
    settings = model._resolve(model.spec_.shape, len(X))
    network, views = model._build(settings, seed=0)
    data, context = Data(X, model.spec_), Context(3, torch.device("cpu"))
    objective = LSDCLoss(network, views, settings, data, context, similarity, settings.composition)
    return staged(objective, data, settings.plan, precise)


def pretraining(kind, name, precise):
    """The same for a pretext; ``stacked`` goes through all its layers, and then through all of them together."""
    X = samples(kind, precise)
    spec = spec_of(X)
    views = build_views("crop" if kind == "image" else "noise", spec.shape)
    backbone = seeded(lambda: BACKBONES["vgg4" if kind == "image" else "mlp"](views.shape, 0.1), 0)
    objective = seeded(lambda: PRETEXTS[name](backbone, views), 0)
    layers = len(backbone.stages) if name == "stacked" and precise else 1
    plan = Plan(epochs=layers, batch_size=BATCH, lr=0.001, optimizer="sgd")
    return staged(objective, Data(X, spec), plan, precise)


def other_method(kind, name, _, precise):
    """The same for the clustering of another method, with what it prepares of all samples; in double precision only.

    VaDE's gradients, divided by the variances of a few samples, have no five digits in single.
    """
    assert precise
    X = samples(kind, precise)
    model = METHODS[name](4, width=0.1, epochs=3, batch_size=BATCH, lr=0.001)
    if "augment" in model.get_params():
        model.set_params(augment="crop" if kind == "image" else "noise")  # as above: not in single precision only
    model.spec_ = spec_of(X)
    settings = model._resolve(model.spec_.shape, len(X))
    network, views = model._build(settings, seed=0)
    data = Precise(X, model.spec_)
    network.double()
    objective = model.objective(network, views, settings, data, Context(3, torch.device("cpu")))
    objective.start()
    stage = staged(objective, data, settings.plan, precise)
    assert not stage.is_done(objective.prepare)
    return stage


def on_graph(kind, _, __, precise):
    """Classifiers on the walks of a neighbour graph: of vectors as they are, of images with the network."""
    X = samples(kind, precise)
    context, plan = Context(3, torch.device("cpu")), {"epochs": 3, "batch_size": 16}
    model = LSDC(4, neighbours="graph", n_init=4, **plan, **({"augment": "crop"} if kind == "image" else {}))
    model.spec_ = spec_of(X)
    settings = model._resolve(model.spec_.shape, len(X))
    network, views = model._build(settings, seed=0)
    if kind == "vector":
        f = torch.nn.functional.normalize(torch.from_numpy(X - X.mean(0))).double()
        fixed = Fixed(f, nearest(f, 5, "l2").indices)
        classifiers = Classifiers(starts(f.float(), 4, 4, 3).double())
        objective = ClassifierTraining("clustering", classifiers, fixed, settings, settings.plan)
    else:
        encoder = Encoder(network.double(), views, Precise(X, model.spec_), settings, context)
        start = torch.randn(4, network.backbone.n_features, 4, generator=torch.Generator().manual_seed(0)).double()
        objective = NetworkTraining(encoder, 0.1 * start, torch.zeros(4, 1, 4), torch.tensor(1), settings)
    objective.module.double()
    objective.data.n = 5 * 16
    stage = Stage(objective, objective.data, settings.plan, context)
    assert not stage.is_done(getattr(objective, "prepare", None))
    return stage


def train_all(precisions=(False, True)):
    """Every stage for an epoch, pretexts to their end: the last record, the weights, the gradients of the last step."""
    results = {}
    makers = {**dict.fromkeys(CLUSTERINGS, clustering), **dict.fromkeys(PRETRAININGS, pretraining)}
    makers |= {**dict.fromkeys(OTHERS, other_method), **dict.fromkeys(GRAPHS, on_graph)}
    for (case, make), precise in product(makers.items(), precisions):
        if not precise and makers[case] in (other_method, on_graph):
            continue
        stage = make(*case, precise)
        for _ in range(stage.plan.epochs if makers[case] is pretraining else 1):
            stage.epoch(Interrupt(wanted=False))
        weights = {name: tensor.numpy() for name, tensor in stage.module.state_dict().items()}
        trained = {name: p.grad for name, p in stage.module.named_parameters() if p.grad is not None}
        gradients = {f"{name}.grad": gradient.numpy() for name, gradient in trained.items()}
        results["-".join([*case, "double" if precise else "single"])] = (stage.history[-1], weights | gradients)
    return results


def fit_and_predict():
    """An estimator in the group: labels, probabilities and features of all samples, in every process."""
    X = np.concatenate([np.random.default_rng(i).normal(4 * i, 1, (700, 5)) for i in range(3)])
    model = LSDC(3, epochs=2, random_state=None).fit(X)
    return model.seed_, model.labels_, model.predict_proba(X[:2049]), model.transform(X[:7])


def in_both_precisions():
    return train_all(), fit_and_predict()


def in_double_precision():
    return train_all((True,)), fit_and_predict()


def work(job, rank, size, store, results):
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    options = {"rank": rank, "world_size": size, "timeout": timedelta(minutes=20)}
    dist.init_process_group("gloo", f"file://{store}", **options)
    try:
        results.put((rank, job()))
        dist.barrier()
    except BaseException as error:
        results.put((rank, error))
        raise
    dist.destroy_process_group()


def together(job, size, folder):
    """What a job gives in each of several processes that form a group."""
    results = FORKSERVER.SimpleQueue()
    words = [(job, rank, size, folder / "store", results) for rank in range(size)]
    processes = [FORKSERVER.Process(target=work, args=w) for w in words]
    for process in processes:
        process.start()
    found = dict(results.get() for _ in processes)
    for result in found.values():
        assert not isinstance(result, BaseException), result
    for process in processes:
        process.join()
        assert process.exitcode == 0
    return [found[rank] for rank in range(size)]


def command(words, folder, rank, size, port):
    """``lsdc`` as torchrun would start it."""
    job = {"RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in job.items()}, TORCHELASTIC_USE_AGENT_STORE="True")
    os.chdir(folder)
    said = os.open(f"said by {rank}", os.O_CREAT | os.O_WRONLY, 0o600)
    os.dup2(said, 1)
    os.dup2(said, 2)
    main(words)


def command_together(words, size, folder):
    """The exit codes of the processes of a command, and all that they said, without the seconds torchrun takes."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    jobs = [FORKSERVER.Process(target=command, args=(words, folder, rank, size, store.port)) for rank in range(size)]
    for process in jobs:
        process.start()
    for process in jobs:
        process.join()
    return [process.exitcode for process in jobs], "".join((folder / f"said by {i}").read_text() for i in range(size))
