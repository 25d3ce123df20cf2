"""Features of colour images that need no training: what patches they are made of, and which of these go together.

After the sparse manifold transform (Chen, Yun, Ma, Olshausen and LeCun, 2022); not in the LSD-C paper (decision 82).
"""

import warnings

import torch
import torch.nn.functional as F
from sklearn.cluster import MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from lsdc.nn.backbone import Backbone
from lsdc.nn.projection import N_DIRECTIONS, Directions

SIDE, PATCH, STRIDE, GRID = 32, 6, 2, 4  # pixels, of an image and of a patch; patches are pooled on a grid
N_ATOMS, N_EMBEDDED = 1024, 128  # patterns that a patch is compared with, and the numbers that it becomes
NEAR = 0.3  # cosine above which a patch holds a pattern: about twenty of them
STEEP = 50.0  # from none to all of a pattern within 0.02 of that cosine: at a jump, rounding would change features
RIDGE = 0.1  # of the mean variance, added before whitening: noise is not blown up
N_FITTED, N_PATCHES = 4_000, 100_000  # images that are enough, and patches among which the patterns are found
BLOCK = 200  # images at a time: their codes take 160 MB


class Patches(nn.Module):
    """Images as a grid of embedded patches.

    A whitened patch is coded by the patterns it resembles. Codes are embedded so that patches of one image lie close
    and those of different images far apart: the directions in which images differ most, measured by how much patches
    differ. That is a generalised eigenvalue problem, solved once. Everything is a convolution.
    """

    white: Tensor
    shift: Tensor
    atoms: Tensor
    embed: Tensor
    centre: Tensor

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        channels, *sides = shape
        self.factors = tuple(max(1, round(side / SIDE)) for side in sides)
        sides = [side // factor for side, factor in zip(sides, self.factors, strict=True)]
        self.size = tuple(max(1, min(PATCH, side // 2)) for side in sides)
        self.stride = tuple(STRIDE if side >= SIDE // 2 else 1 for side in sides)
        places = [(a - b) // c + 1 for a, b, c in zip(sides, self.size, self.stride, strict=True)]
        self.pool_stride = tuple(max(1, n // GRID) for n in places)
        self.pool = tuple(n - (min(GRID, n) - 1) * step for n, step in zip(places, self.pool_stride, strict=True))
        n_values = channels * self.size[0] * self.size[1]
        self.n_out = N_EMBEDDED * min(GRID, places[0]) * min(GRID, places[1])
        self.register_buffer("white", torch.zeros(n_values, channels, *self.size))
        self.register_buffer("shift", torch.zeros(n_values))
        self.register_buffer("atoms", torch.zeros(N_ATOMS, n_values))
        self.register_buffer("embed", torch.zeros(N_EMBEDDED, N_ATOMS))
        self.register_buffer("centre", torch.zeros(N_EMBEDDED))

    def forward(self, x: Tensor) -> Tensor:
        if torch.compiler.is_compiling():  # an exported model has batches of any size, and no loop over them
            return self._pooled(x)
        return torch.cat([self._pooled(block) for block in torch.split(x, BLOCK)])

    def _pooled(self, x: Tensor) -> Tensor:
        embedded = F.conv2d(self.codes(x), self.embed[:, :, None, None], -self.centre)
        return F.avg_pool2d(F.normalize(embedded), self.pool, self.pool_stride).flatten(1)

    def codes(self, x: Tensor) -> Tensor:
        """Which patterns each patch holds (N, atoms, height, width), nearly all of them zeros and ones."""
        patches = F.normalize(F.conv2d(self.smaller(x), self.white, self.shift, self.stride))
        return (STEEP * (F.conv2d(patches, self.atoms[:, :, None, None]) - NEAR) + 0.5).clamp(0, 1)

    def smaller(self, x: Tensor) -> Tensor:
        """Images of about 32 pixels a side."""
        return x if self.factors == (1, 1) else F.avg_pool2d(x, self.factors)

    @torch.no_grad()
    def fit(self, x: Tensor, origin: Tensor, seed: int) -> None:
        """Find whitening, patterns and embedding from some images."""
        rng = torch.Generator().manual_seed(seed)
        patches = torch.cat([self._some_patches(block, N_PATCHES // len(x), rng) for block in torch.split(x, BLOCK)])
        self._fit_whitening(patches)
        self._fit_atoms(F.normalize(patches @ self.white.flatten(1).T + self.shift), seed % 2**32)
        self._fit_embedding(x)

    def _some_patches(self, x: Tensor, n: int, rng: torch.Generator) -> Tensor:
        """At most ``n`` patches of each image, at least one, drawn at random."""
        found = F.unfold(self.smaller(x), self.size, stride=self.stride).mT
        places = torch.rand(found.shape[:2], generator=rng).argsort(1)[:, : max(1, n)].to(x.device)
        return found[torch.arange(len(x), device=x.device)[:, None], places].flatten(0, 1)

    def _fit_atoms(self, patches: Tensor, seed: int) -> None:
        """The means of similar patches; fewer patches than atoms leave the last ones empty."""
        means = MiniBatchKMeans(min(N_ATOMS, len(patches)), n_init=1, batch_size=4096, max_iter=10, random_state=seed)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # copies of few patches
            centres = torch.from_numpy(means.fit(patches.cpu().numpy()).cluster_centers_)
        self.atoms.zero_()[: len(centres)] = F.normalize(centres).to(self.atoms)

    def _fit_whitening(self, patches: Tensor) -> None:
        """Patches less their own mean, which is brightness, with all directions equally wide."""
        n = patches.shape[1]
        no_mean = torch.eye(n) - 1 / n
        patches = patches.double().cpu() @ no_mean.double()
        centre = patches.mean(0)
        values, vectors = torch.linalg.eigh((patches - centre).T @ (patches - centre) / len(patches))
        ridge = (RIDGE * values.mean()).clamp(min=1e-12)
        whiten = vectors * (values.clamp(min=0) + ridge).rsqrt() @ vectors.T
        self.white.copy_((no_mean.double() @ whiten).T.reshape(self.white.shape))
        self.shift.copy_(-centre @ whiten)

    def _fit_embedding(self, x: Tensor) -> None:
        """The directions of codes in which means of images vary most, where codes of patches vary by one."""
        total = x.new_zeros(N_ATOMS, N_ATOMS, dtype=torch.float64)
        between, mean, n_codes = total.clone(), total[0].clone(), 0
        for block in torch.split(x, BLOCK):
            codes = self.codes(block).flatten(2).mT
            flat = codes.flatten(0, 1)
            total += flat.T @ flat
            mean += flat.sum(0)
            n_codes += len(flat)
            of_images = codes.mean(1)
            between += of_images.T @ of_images
        mean /= n_codes
        total = total / n_codes - mean.outer(mean)
        between = between / len(x) - mean.outer(mean)
        total.diagonal().add_(1e-3 * total.diagonal().mean().clamp(min=1e-12))
        values, vectors = torch.linalg.eigh(total.cpu())
        root = vectors * values.clamp(min=1e-12).rsqrt() @ vectors.T
        leading = torch.linalg.eigh(root @ between.cpu() @ root).eigenvectors.flip(1)[:, :N_EMBEDDED]
        self.embed.copy_((root @ leading).T)
        self.centre.copy_(self.embed @ mean.to(self.embed))


def patches(shape: tuple[int, ...], width: float = 1.0) -> Backbone:
    """Embedded patches of images on a grid, and at most 128 x ``width`` principal directions of these."""
    stage = Patches(shape)
    n = max(1, min(stage.n_out, round(N_DIRECTIONS * width)))
    return Backbone([stage, Directions(stage.n_out, n)], n)
