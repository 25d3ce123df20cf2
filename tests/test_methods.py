"""What is each method's own: the facts of its paper that the common tests cannot know."""

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs

from lsdc import DEC, IIC, IMSAT, JULE, METHODS, DeepCluster, VaDE
from lsdc.data.augment import build_views
from lsdc.data.sampler import Batch
from lsdc.functional import companions, n_after, target_distribution
from lsdc.methods import dec, deepcluster, iic, imsat, jule, vade
from lsdc.nn.centres import Centres
from lsdc.nn.mlp import coder
from lsdc.nn.network import seeded
from lsdc.pretext import StackedAutoencoder, decode, mirrored
from lsdc.training.context import Context

pytestmark = pytest.mark.filterwarnings("ignore::lsdc.HealthWarning")
CPU = torch.device("cpu")
SMALL = {"width": 0.05, "batch_size": 32, "random_state": 0}


def blobs(n=120, d=6, centers=3):
    return make_blobs(n, d, centers=centers, random_state=0)


def fitted(method, X=None, **params):
    return method(3, **{**SMALL, "epochs": 2, **params}).fit(blobs()[0] if X is None else X)


def objective_of(method, make, X=None, **params):
    """The objective of a method over a network that was fitted a little, as the loop would see it."""
    model = fitted(method, X, **params)
    data = model._data(blobs()[0] if X is None else X, reset=False)
    settings = model.settings(**model.settings_)
    return make(model.network_, model._views, settings, data, Context(0, CPU)), data


def batch_of(data, rows, t=0.0, done=0.0):
    return Batch(data.batch(rows), rows, torch.Generator().manual_seed(0), t, done)


# ---- DEC and IDEC -------------------------------------------------------------------------------------------


def test_decs_target_is_that_of_all_samples_and_fixed_between_refreshes():
    objective, data = objective_of(DEC, dec.DECLoss, pretext_plan={"epochs": 1})
    assert objective.prepare([]) is False
    _, q = objective.encoded()
    torch.testing.assert_close(objective.kept.target, target_distribution(q))
    before = objective.kept.target.clone()
    with torch.no_grad():
        objective.network.centres += 1.0
    losses = objective.losses(batch_of(data, torch.arange(10)))
    assert torch.equal(objective.kept.target, before)
    assert losses["changed"] == 1.0
    objective.prepare([{}])
    assert not torch.equal(objective.kept.target, before)


def test_dec_is_done_when_no_label_changes():
    objective, _ = objective_of(DEC, dec.DECLoss, pretext_plan={"epochs": 1})
    assert objective.prepare([]) is False
    assert objective.prepare([{}]) is True


def test_dec_starts_from_k_means_and_trains_its_centres():
    X, _ = blobs()
    still = fitted(DEC, epochs=0, pretext_plan={"epochs": 2})
    z = still.transform(X)
    means = np.stack([z[still.labels_ == c].mean(0) for c in range(3)])
    np.testing.assert_allclose(still.network_.centres.detach().numpy(), means, atol=1e-4)
    trained = fitted(DEC, epochs=1, pretext_plan={"epochs": 2})
    assert not torch.equal(trained.network_.centres, still.network_.centres)


def test_idec_keeps_the_decoder_learning_and_dec_does_not():
    kept = {name: METHODS[name](3, **SMALL, epochs=1, pretext_plan={"epochs": 2}) for name in ("dec", "idec")}
    start = DEC(3, **SMALL, epochs=0, pretext_plan={"epochs": 2}).fit(blobs()[0]).network_.decoder.state_dict()
    moved = {
        name: any(not torch.equal(start[key], value) for key, value in decoder.items())
        for name, decoder in ((n, m.fit(blobs()[0]).network_.decoder.state_dict()) for n, m in kept.items())
    }
    assert moved == {"dec": False, "idec": True}


def test_the_stacked_autoencoder_trains_one_layer_after_the_other():
    backbone = seeded(lambda: coder((6,), 0.02), 0)
    pretext = StackedAutoencoder(backbone, build_views("none", (6,)), mirrored(backbone))
    x = torch.randn(8, 6)
    for part, layer in enumerate(backbone.stages):
        pretext.module.zero_grad(set_to_none=True)
        pretext.losses(Batch(x, torch.arange(8), torch.Generator(), 0.0, part / 8 + 0.01))["loss"].backward()
        touched = {name.split(".")[2] for name, p in backbone.named_parameters(prefix="b") if p.grad is not None}
        assert touched == {str(part)}, layer
    pretext.losses(Batch(x, torch.arange(8), torch.Generator(), 0.0, 0.6))["loss"].backward()
    assert all(p.grad is not None for p in pretext.module.parameters())
    assert decode(pretext.decoder, backbone(x)).shape == x.shape


# ---- VaDE ---------------------------------------------------------------------------------------------------


def test_vade_starts_from_the_mixture_of_the_codes():
    X, _ = blobs()
    model = fitted(VaDE, epochs=0, pretext_plan={"epochs": 2})
    z = torch.from_numpy(model.transform(X))
    mixture = model.network_.mixture
    torch.testing.assert_close(mixture.log_pi.exp().sum(), torch.tensor(1.0))
    p = torch.from_numpy(model.predict_proba(X))
    torch.testing.assert_close(mixture.log_pi.exp().detach(), torch.full((3,), 1 / 3))  # whatever the fitted shares
    torch.testing.assert_close((p.T @ z) / p.sum(0)[:, None], mixture.mu.detach(), atol=0.05, rtol=0.05)


def test_vades_code_is_the_mean_of_z():
    objective, data = objective_of(VaDE, vade.VaDELoss, pretext_plan={"epochs": 1})
    x = data.batch(torch.arange(5))
    torch.testing.assert_close(objective.network.encode(x)[0], objective.network(x).f)


# ---- IMSAT --------------------------------------------------------------------------------------------------


def test_imsats_perturbed_passes_leave_batch_norm_alone():
    objective, data = objective_of(IMSAT, imsat.IMSATLoss)
    norm = objective.network.backbone.stages[0][1]
    objective.module.train()
    before = int(norm.num_batches_tracked)
    objective.losses(batch_of(data, torch.arange(20)))
    assert int(norm.num_batches_tracked) == before + 1


def test_imsats_radius_is_a_quarter_of_the_tenth_neighbours_distance():
    objective, data = objective_of(IMSAT, imsat.IMSATLoss)
    x = data.batch(torch.arange(len(data))).double()
    tenth = torch.cdist(x, x).sort(1).values[:, 10]
    torch.testing.assert_close(objective.kept.radius.double(), tenth / 4, rtol=1e-4, atol=1e-5)


# ---- IIC ----------------------------------------------------------------------------------------------------


def test_iic_trains_the_kinds_of_heads_by_turns_and_ends_with_the_main_ones():
    model = fitted(IIC, epochs=3)
    assert ["main" in record for record in model.history_] == [True, False, True]
    assert ["over" in record for record in model.history_] == [False, True, False]
    assert model.network_.head.best == int(np.argmin(model.history_[-1]["main"]))


def test_iic_predicts_with_the_head_of_the_lowest_loss():
    objective, _ = objective_of(IIC, iic.IICLoss)
    objective.prepare([{"main": [0.0, -1.0, -3.0, -2.0, 0.0]}, {"over": [0.0] * 5}])
    assert objective.network.head.best == 2
    f = torch.randn(4, objective.network.backbone.n_features)
    objective.network.eval()
    assert torch.equal(objective.network.head(f), objective.network.head.main[2](f))


def test_iic_shows_colour_images_by_their_edges():
    X = np.random.default_rng(0).random((30, 8, 8, 3))
    model = fitted(IIC, X, width=0.1)
    assert model._views.shape == (2, 8, 8)
    assert model._views.plain(torch.ones(2, 3, 8, 8)).eq(0).all()


# ---- JULE ---------------------------------------------------------------------------------------------------


def test_jules_clusters_fall_by_the_unroll_rate():
    X = np.random.default_rng(0).normal(size=(300, 4))
    model = JULE(2, **SMALL, epochs=4).fit(X)
    counts = [int(record["clusters"]) for record in model.history_]
    assert counts[0] == counts[1] > 2
    assert counts[2] == n_after(counts[0], 2)


def test_companions_are_other_members_of_the_same_cluster():
    labels = torch.tensor([0, 1, 0, 2, 1, 0])
    indices = torch.arange(6).repeat(50)
    found = companions(labels, indices, torch.Generator().manual_seed(0))
    assert torch.equal(labels[found], labels[indices])
    alone = indices == 3
    assert (found[alone] == 3).all()
    assert (found[~alone] != indices[~alone]).all()
    assert set(found[indices == 0].tolist()) == {2, 5}


def test_centres_are_means_and_clusters_without_samples_stay():
    centres = Centres(3, 2)
    f = torch.tensor([[0.0, 0.0], [2.0, 0.0], [5.0, 5.0]])
    centres.move_to(f, torch.tensor([0, 0, 2]))
    assert centres.centres.tolist() == [[1.0, 0.0], [0.0, 0.0], [5.0, 5.0]]
    assert centres(f).argmax(1).tolist()[2] == 2


def test_jules_first_clusters_know_no_brightness_and_no_contrast():
    rng = torch.Generator().manual_seed(0)
    images = torch.rand(60, 48, generator=rng)
    contrast, brightness = (torch.rand(60, 1, generator=rng) + 0.1 for _ in range(2))
    first = jule.first_features(images, (3, 4, 4))
    torch.testing.assert_close(jule.first_features(contrast * images + brightness, (3, 4, 4)), first)
    torch.testing.assert_close(first.norm(dim=1), torch.ones(60))
    assert jule.first_features(torch.ones(2, 48), (3, 4, 4)).eq(0).all()
    assert torch.equal(jule.first_features(images, (48,)), images)


def test_jules_network_gives_features_of_unit_length():
    objective, data = objective_of(JULE, jule.JULELoss)
    f, _ = objective.encoded()
    torch.testing.assert_close(f.norm(dim=1), torch.ones(len(data)))


# ---- DeepCluster --------------------------------------------------------------------------------------------


def test_deepclusters_agreement_says_how_much_the_labels_moved():
    objective, _ = objective_of(DeepCluster, deepcluster.DeepClusterLoss)
    objective.prepare([])
    first = objective.kept.labels.clone()
    classifier = objective.network.classifier.weight.detach().clone()
    objective.prepare([])  # the same features and seed
    assert torch.equal(objective.kept.labels, first)
    assert objective.kept.agreement == pytest.approx(1.0)
    objective.prepare([{}])
    assert not torch.equal(objective.network.classifier.weight, classifier)


def test_deepcluster_predicts_by_the_last_k_means():
    X, _ = blobs()
    model = fitted(DeepCluster)
    white = model.network_.whitened(torch.from_numpy(model.transform(X)))
    near = torch.cdist(white, model.network_.centres.centres).argmin(1)
    assert np.array_equal(near.numpy(), model.labels_)
