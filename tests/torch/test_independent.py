"""`independent=True`: who else is in a batch changes no bit of a record's gradient; by brute force over many models."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from tests.torch.helpers import data, network, private
from tests.torch.models import CASES, PaperCNN, Transformer, images, words
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import shapedp as sdp
import shapedp.torch.training as at_work
import shapedp_check
from shapedp.mechanisms.watch import watching
from shapedp.privacy.assumptions import SENTENCES
from shapedp.sampling import source
from shapedp.torch import Adaptive, Flat, Layout, PerLayer, RecordError, TrainingPlan, make_private
from shapedp.torch.batches import FixedBatches, PlacedBatches, PoissonBatches
from shapedp.torch.gradients import summed_rows
from shapedp.torch.loader import Part
from shapedp.torch.rounding import OTHERS, margin, most_records

PLACES = 22


class Masked(nn.Module):
    """Attention in which the places after the first zero are padding."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(9, 8, padding_idx=0)
        self.attention, self.head = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        h, mask = self.tokens(x), x == 0
        mixed = self.attention(h, h, h, key_padding_mask=mask, need_weights=False)[0]
        return self.head(F.dropout(mixed.masked_fill(mask[..., None], 0.0), 0.2).sum(1))


class Steep(nn.Module):
    """A sigmoid's last bit decides through a ReLU whether a record has a gradient at all."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.first, self.last = nn.Linear(7, 9), nn.Linear(9, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.sigmoid(self.first(x))
        return 1e7 * self.last(torch.relu((h - h.detach().mean(1, keepdim=True)) * 1e6))


class Noisy(nn.Module):
    """Numbers drawn in the forward."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x + torch.rand_like(x))


@dataclass(frozen=True)
class Kind:
    build: Callable[[], nn.Module]
    inputs: Callable[[int], Tensor]
    classes: int = 3
    options: tuple[tuple[str, Any], ...] = ()
    half: bool = False
    equal: bool = False


def rows(*shape: int, size: float = 1.0) -> Callable[[int], Tensor]:
    return lambda n: size * torch.randn(n, *shape)


def net(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(*layers)


SUM = (("loss_reduction", "sum"),)
KINDS: dict[str, Kind] = {
    **{name: Kind(case.build, case.inputs, case.classes) for name, case in CASES.items()},
    "dropout": Kind(lambda: net(nn.Linear(6, 9), nn.Dropout(0.5), nn.ReLU(), nn.Linear(9, 3)), rows(6)),
    "dropout of channels": Kind(
        lambda: net(nn.Conv2d(2, 5, 3), nn.Dropout2d(0.4), nn.Flatten(), nn.Linear(80, 3)), images(2, 6)
    ),
    "random numbers in the forward": Kind(Noisy, rows(6)),
    "sigmoid, then ReLU": Kind(Steep, rows(7)),
    "sigmoid, then ReLU, equal records": Kind(Steep, rows(7), equal=True),
    "padded attention with dropout": Kind(Masked, lambda n: torch.randint(0, 9, (n, 5))),
    "one number, mean": Kind(lambda: net(nn.Linear(1, 1), nn.Flatten()), rows(1), 1),
    "tiny gradients of a mean": Kind(lambda: nn.Linear(5, 3), rows(5, size=1e-38)),
    "huge values": Kind(lambda: net(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), rows(5, size=1e18)),
    "a sum": Kind(lambda: net(nn.Linear(5, 8), nn.ELU(), nn.Linear(8, 3)), rows(5), options=SUM),
    "half precision, sum": Kind(lambda: Transformer(), words(20, 7), options=SUM, half=True),
    "half precision, mean": Kind(lambda: net(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 3)), rows(5), half=True),
    "half precision, conv": Kind(PaperCNN, images(1, 28), 10, half=True),
    "per layer": Kind(lambda: Transformer(), words(20, 7), options=(("clip", PerLayer(1.0)),)),
    "adaptive clip": Kind(
        lambda: net(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 3)), rows(5), options=(("clip", Adaptive(0.05)),)
    ),
    "float64": Kind(
        lambda: net(nn.Linear(5, 8), nn.Softplus(), nn.Linear(8, 3)).double(), lambda n: rows(5)(n).double()
    ),
    "Opacus' gradients": Kind(PaperCNN, images(1, 28), 10, options=(("gradients", "opacus"),)),
}


@dataclass
class Pass:
    """What reached the noise, and of each record the gradients and norms that were clipped."""

    query: np.ndarray
    single: list[tuple[bytes, ...]]


def one_pass(kind: Kind, x: Tensor, y: Tensor, kept: Tensor, **more: Any) -> tuple[Pass, Any]:
    """A step of a fresh training, always with the same weights and random numbers, on a batch of places."""
    torch.manual_seed(3)
    model = kind.build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    options = {"clip": 1.0, "independent": True} | dict(kind.options) | more
    loader: Any = DataLoader(TensorDataset(x, y), batch_size=len(x) - 1)
    make_private(
        model, optimizer, loader, noise_multiplier=1.0, delta=1e-5, check_records=False,
        rng=np.random.default_rng(5), **options,
    )  # fmt: skip
    training: Any = optimizer.privacy_  # type: ignore[attr-defined]
    found = Pass(np.zeros(0), [])

    def keep(mechanism: Any, query: Any, draw: Any) -> Any:
        found.query = np.array(query, dtype=np.float64)
        return query

    def listed(clip: Any, layout: Any, records: int, gradients: Any, scale: float, kept: Any) -> Tensor:
        tables = [piece.dense().reshape(records, -1) for piece in gradients.values()]
        norms = [piece.squared_norms().reshape(records, 1) for piece in gradients.values()]
        found.single = [tuple(one[j].numpy().tobytes() for one in tables + norms) for j in range(records)]
        return summed_rows(clip, layout, records, gradients, scale, kept)

    patch = pytest.MonkeyPatch()
    patch.setattr(at_work, "summed_rows", listed)
    reduction = options.get("loss_reduction", "mean")
    try:
        with watching(keep):
            training.receive(Part(len(x), True, kept=kept))
            with torch.autocast("cpu", dtype=torch.bfloat16) if kind.half else nullcontext():
                answer = model(x)
                if kind.classes == 1:
                    loss = F.mse_loss(answer[:, 0], y.to(answer.dtype), reduction=reduction)
                else:
                    loss = F.cross_entropy(answer, y, reduction=reduction)
            loss.backward()
            optimizer.step()
    finally:
        patch.undo()
    return found, training


def batch(kind: Kind) -> tuple[Tensor, Tensor, Tensor]:
    """Records at 15 of the places, the others empty."""
    torch.manual_seed(11)
    x, y = kind.inputs(PLACES), torch.randint(0, max(kind.classes, 2), (PLACES,))
    if kind.equal:
        x, y = x[:1].repeat(PLACES, *(1,) * (x.ndim - 1)), y[:1].repeat(PLACES)
    kept = torch.zeros(PLACES, dtype=torch.bool)
    kept[torch.randperm(PLACES)[:15]] = True
    x = x.masked_fill(~kept.reshape(-1, *(1,) * (x.ndim - 1)), 0)
    return x, y.masked_fill(~kept, 0), kept


@pytest.mark.filterwarnings("ignore:Full backward hook", "ignore:There is a performance drop")
@pytest.mark.parametrize("name", KINDS)
def test_no_bit_of_a_record_depends_on_who_else_is_there(name: str) -> None:
    """Each record leaves, and becomes another one: the others keep all bits, the sum moves within the certified set."""
    kind = KINDS[name]
    x, y, kept = batch(kind)
    whole, training = one_pass(kind, x, y, kept)
    certified = training.mechanism.sensitivity
    radius = certified.radius if hasattr(certified, "radius") else float(np.linalg.norm(certified.radii))
    moves = []
    for leaving, other in itertools.product(torch.nonzero(kept).flatten().tolist(), (None, 0.0, torch.inf)):
        fewer, there = x.clone(), kept.clone()
        if other is None:
            fewer[leaving], there[leaving] = 0, False
        else:
            fewer[leaving] = 1 if not x.is_floating_point() else other or 1e3 * torch.rand_like(x[0])
        found, _ = one_pass(kind, fewer, y, there)
        assert all(found.single[k] == whole.single[k] for k in range(PLACES) if k != leaving)
        if other is None:
            moves.append(float(np.linalg.norm(found.query - whole.query)))
    assert max(moves) <= radius
    assert max(moves) > 0


def others_changed(places: int, there: int) -> int:
    """How many records' gradients change when one of `there` leaves a batch cut to who is there."""
    kind = KINDS["sigmoid, then ReLU"]
    torch.manual_seed(2)
    x, y = kind.inputs(there), torch.zeros(there, dtype=torch.int64)
    found = []
    for n in (there, there - 1):
        pad = max(places - n, 0)
        rows = torch.cat([x[:n], torch.zeros(pad, 7)]), torch.cat([y[:n], y.new_zeros(pad)])
        found.append(one_pass(kind, *rows, torch.arange(n + pad) < n, loss_reduction="mean")[0].single)
    return sum(a != b for a, b in zip(found[0][: there - 1], found[1], strict=False))


def test_without_places_the_same_models_break_it() -> None:
    """The check above can fail: a mean over one record less changes many, and places change none."""
    assert others_changed(0, 16) >= 5
    assert others_changed(24, 16) == 0


def test_whoever_is_drawn_a_record_that_joins_moves_nobody() -> None:
    """All sets of places are as likely, in every order: 6 of 12,000 cases at a false-alarm rate of 1e-6."""
    places = 4
    inner = FixedBatches(range(3), 2, 4000, source(np.random.default_rng(1)), None, print)
    seen: Counter[tuple[int, ...]] = Counter()
    drawn: Counter[int] = Counter()
    for piece in PlacedBatches(inner, places, source(np.random.default_rng(2)), None, lambda part: None):
        assert len(piece) == places
        first, second = (piece.index(one) for one in sorted(set(piece) - {-1}))
        seen[first, second] += 1
        drawn.update(set(piece) - {-1})
    assert len(seen) == places * (places - 1)
    assert all(abs(many - 4000 / 12) < 6 * (4000 / 12) ** 0.5 for many in seen.values())
    assert all(abs(many - 8000 / 3) < 6 * (8000 / 9) ** 0.5 for many in drawn.values())


def test_pieces_have_one_size_and_hold_every_record_once() -> None:
    for most, records, expected in ((None, 40, 10), (7, 40, 10), (3, 9, 9), (64, 40, 39)):
        parts: list[Part] = []
        inner = PoissonBatches(range(0, 2 * records, 2), expected / records, 20, source(), None, print)
        batches = PlacedBatches(inner, 30, source(), most, parts.append)
        pieces = list(batches)
        assert len({len(piece) for piece in pieces} - {30, 40}) <= 1
        assert most is None or max(map(len, pieces)) <= most
        for piece, part in zip(pieces, parts, strict=True):
            assert part.records == len(piece)
            assert part.kept is not None
            assert part.kept.tolist() == [one >= 0 for one in piece]
        firsts = [k for k, part in enumerate(parts) if part.first]
        assert len(firsts) == sum(part.last for part in parts) == 20
        for start, end in itertools.pairwise([*firsts, len(parts)]):
            there = [one for piece in pieces[start:end] for one in piece if one >= 0]
            assert len(there) == len(set(there))
            assert all(one % 2 == 0 for one in there)


def summed(batches: list[list[int]], **options: Any) -> list[np.ndarray]:
    """The sums of a training through its loader, the records at the given places."""
    model, optimizer, loader, _ = private(independent=True, lr=0.0, **options)
    seen: list[np.ndarray] = []

    def keep(mechanism: Any, query: Any, draw: Any) -> Any:
        seen.append(np.array(query))
        return query

    @dataclass
    class Given:
        announce: Callable[[Part], None]

        def __iter__(self) -> Any:
            for piece in batches:
                self.announce(Part(len(piece), True, kept=torch.tensor(piece) >= 0))
                yield piece

    loader.batches = Given
    with watching(keep):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    return seen


def test_through_the_loader_only_the_record_itself_leaves() -> None:
    """Places without a record hold zeros, and add nothing; each record adds its clipped row, over the places."""
    with_, without, alone, none = summed([[5, -1, 9, 30], [5, -1, -1, 30], [-1, -1, 9, -1], [-1, -1, -1, -1]])
    assert np.abs(with_ - without - alone).max() < 1e-12
    assert 0.1 < np.linalg.norm(alone) <= 1
    assert not none.any()


class Augmented(torch.utils.data.Dataset[Any]):
    """Records that take as many random numbers as their first value says, from all three generators."""

    def __init__(self, records: int) -> None:
        self.x, self.y = data(records)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> Any:
        import random

        for _ in range(index % 5):
            torch.rand(1), random.random(), np.random.rand()  # noqa: NPY002
        moved = torch.rand(6) + random.random() + np.random.rand()  # noqa: NPY002
        return self.x[index] + moved, self.y[index]


def test_random_numbers_of_the_loader_belong_to_places() -> None:
    """A record that leaves, and took more random numbers than an empty place does, changes no other record's."""
    from shapedp.torch.loader import _Pieces

    pieces = _Pieces(Augmented(60), torch.utils.data.default_collate, True)
    found = []
    for batch in ([4, 7, 9, -1], [-1, 7, 9, -1], [8, 7, 9, 21]):
        torch.manual_seed(1)
        found.append((pieces[batch][0], torch.rand(1)))
    for x, after in found[1:]:
        assert torch.equal(x[1:3], found[0][0][1:3])
        assert torch.equal(after, found[0][1])
    torch.manual_seed(1)
    plain = _Pieces(Augmented(60), torch.utils.data.default_collate)
    first = plain[[4, 7, 9]][0]
    torch.manual_seed(1)
    assert not torch.equal(plain[[7, 9]][0], first[1:])


def test_batches_of_another_length_are_refused() -> None:
    def longest(records: list[Any]) -> Any:
        width = max(int(record[0]) for record in records)
        return torch.stack([torch.ones(width) for _ in records])

    model = nn.Sequential(nn.AdaptiveAvgPool1d(3), nn.Linear(3, 1))
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    lengths = TensorDataset(torch.tensor([3] * 30 + [4] * 30))
    loader = DataLoader(lengths, batch_size=1, collate_fn=longest)
    _, _, batches = make_private(
        model, sgd, loader, clip=1.0, noise_multiplier=1.0, delta=1e-5, independent=True, check_records=False,
        rng=np.random.default_rng(0),
    )  # fmt: skip

    def train() -> None:
        for x in batches:
            model(x).sum().backward()
            sgd.step()

    with pytest.raises(RecordError, match="pad to a fixed length"):
        train()


class Whole(nn.Module):
    """One layer whose last bits follow the other records: too little for the usual check."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x * (1 + 1e-6 * x.sum().detach().sin()))


def test_a_model_in_which_others_change_a_bit_is_refused() -> None:
    for independent in (False, True):
        model, optimizer, loader, _ = private(Whole(), independent=independent)
        x, y = next(iter(loader))
        if independent:
            with pytest.raises(RecordError, match="last bits"):
                model(x)
        else:
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def test_the_certificate_names_the_weaker_premise() -> None:
    plain, placed = (private(epsilon=2.0, epochs=1, independent=on)[3] for on in (False, True))
    assert placed.certificate.assumptions[0] == SENTENCES["places"]
    gone = set(plain.certificate.assumptions) - set(placed.certificate.assumptions)
    assert gone == {SENTENCES["gradients"]}
    sets: list[Any] = [training.mechanism.sensitivity for training in (placed, plain)]
    assert sets[0].radius < sets[1].radius
    assert sets[0].radius == 1 + margin(12, 53, placed.scale, 1.0, 0.0) < 1 + margin(12, 53, placed.scale)
    written = placed.certificate.to_json()
    assert sdp.verify(sdp.privacy.Certificate.from_json(written)).assumptions == placed.certificate.assumptions
    assert shapedp_check.check(written).verdict == "certified"
    with pytest.raises(ValueError, match="assumptions"):
        sdp.verify(sdp.privacy.Certificate.from_json(written | {"assumptions": written["assumptions"][1:]}))


def test_it_is_the_default_where_it_costs_nothing() -> None:
    for sampling, expected in (("fixed", True), ("shuffle", True), ("poisson", False), ("allocation", False)):
        training = private(sampling=sampling, steps=5)[3]
        assert training.planned.independent is expected
        assert (training.mechanism.premises[0] == "places") is expected
        assert private(sampling=sampling, steps=5, independent=False)[3].planned.independent is False


def test_plans_hold_it_and_older_files_do_not() -> None:
    plan = TrainingPlan(
        Layout.single(5), records=3000, batch_size=256, clip=Flat(1.0), scale=1.0, delta=1e-5, independent=True
    )
    assert plan.places() == most_records(256) == 499
    assert "at random among 499 places" in str(plan)
    assert TrainingPlan.from_json(plan.to_json()) == plan
    older = {name: value for name, value in plan.to_json().items() if name != "independent"}
    assert TrainingPlan.from_json(older).independent is False
    assert 499 <= 2 * plan.places(2) < 2 * most_records(128) + 4
    with pytest.raises(ValueError, match="leave owner= or"):
        TrainingPlan(
            Layout.single(5), records=300, batch_size=25, clip=Flat(1.0), scale=1.0, independent=True, per_owner=2
        )


@pytest.mark.parametrize(
    "options", [{}, {"physical_batch_size": 16}, {"sampling": "allocation"}, {"sampling": "fixed"}]
)
def test_a_network_learns_as_ever(options: dict[str, Any]) -> None:
    model, optimizer, loader, training = private(
        network(), lr=1.0, batch_size=30, noise_multiplier=0.01, independent=True, **options
    )
    for _ in range(30):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    x, y = data()
    assert training.steps == 60
    assert float((model(x).argmax(1) == y).float().mean()) > 0.9


def test_room_for_others_is_what_the_option_saves() -> None:
    n = most_records(256)
    assert margin(256, 26010, 0.0) - margin(256, 26010, 0.0, 1.0, 0.0) == pytest.approx(n * OTHERS)
