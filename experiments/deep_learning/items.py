"""Private training: figures 7, 8, 15-17 and tables 4 and 12 of the product-noise paper, Table IV of the i.n.i.d. one,
Table 2 of the GeoDP one, and accuracy at equal certified epsilon.

    shapedp reproduce deep-learning/table-4 [--full]

Shown are the trainings stored in runs.json (dl_studies.py writes them, on a GPU in minutes); with --full on a machine
with a GPU they are trained anew. Expected: at equal certified epsilon optimal per-layer noise beats SPR noise on the
MNIST CNN, and flat noise is level with it; every claim of product noise is refuted by one step.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from scipy import stats

from shapedp.accounting import amplify, compose, he_theorem_3
from shapedp.accounting.subsample import SubsampledLoss
from shapedp.papers.datasets import MissingDataError, load_movielens_1m
from shapedp.papers.datasets.cards import CARDS
from shapedp.papers.geodp.recipes import geodp, noise_multiplier
from shapedp.papers.register.harness import ABSENT, COMPUTED, DIFFERS, Item, Progress, Table, compared
from shapedp.privacy import GaussianLoss

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

RUNS = HERE / "runs.json"
Row = dict[str, Any]
PRINTED: dict[str, tuple[dict[str, float], dict[str, float]]] = {  # Gaussian noise (epsilon by PRV), product noise
    "MNIST": ({"epsilon": 1.66}, {"epsilon": 0.99, "delta": 9.87e-6}),
    "Adult": ({"epsilon": 15.86, "test": 0.8513, "train": 0.8509},
              {"epsilon": 3.97, "delta": 8.10e-6, "test": 0.8524, "train": 0.8535}),
    "IMDb": ({"epsilon": 31.26, "test": 0.8098, "train": 0.8395},
             {"epsilon": 12.99, "delta": 6.50e-6, "test": 0.8118, "train": 0.8515}),
    "CIFAR-10": ({"epsilon": 43.80}, {"epsilon": 38.11, "delta": 9.94e-6}),
    "MovieLens": ({"epsilon": 4.53, "test": 1.06, "train": 1.06},
                  {"epsilon": 3.88, "delta": 5.90e-6, "test": 1.05, "train": 1.05}),
}  # fmt: skip
SETTINGS = {  # data: samples, batch, epochs, sigma, initial epsilon, k (table 12; MNIST's 50 epochs are figure 7's)
    "MNIST": (60_000, 256, 50, 1.3, 0.3, 40_000),
    "Adult": (29_305, 256, 30, 0.55, 0.8, 200_000),
    "IMDb": (25_000, 512, 60, 0.56, 1.0, 40_000),
    "CIFAR-10": (60_000, 512, 100, 0.5, 1.8, 300_000),
    "MovieLens": (800_167, 10_000, 20, 0.6, 0.8, 20_000),
}
TABLE_4 = {"Adult": (0.51, 0.50), "IMDb": (0.51, 0.50), "MNIST": (0.50, 0.50), "CIFAR-10": (0.51, 0.51)}
TABLE_4 |= {"MovieLens": (0.50, 0.50)}
TABLE_IV = {  # accuracy printed at epsilon 5 and 8; the Laplace rows claim delta = 0
    "flat Gaussian": (63.26, 68.55),
    "SPR per value": (42.90, 47.16),
    "optimal per value": (57.86, 61.58),
    "pure Laplace, i.i.d.": (62.17, 67.46),
    "pure Laplace, SPR": (42.05, 46.08),
    "pure Laplace, i.n.i.d.": (59.02, 63.46),
}
GEODP = {  # method, B, beta: accuracy printed at sigma 1 and 10
    ("DP", 8192, None): (0.9425, 0.8793),
    ("DP", 16384, None): (0.9552, 0.8812),
    ("DP + AUTO-S", 16384, None): (0.9571, 0.8840),
    ("GeoDP", 8192, 0.1): (0.9647, 0.9031),
    ("GeoDP", 16384, 0.1): (0.9804, 0.9358),
    ("GeoDP", 8192, 0.5): (0.6031, 0.5380),
    ("GeoDP + AUTO-S", 16384, 0.1): (0.9817, 0.9364),
}


def stored() -> list[Row]:
    """The trainings in runs.json."""
    return list(json.loads(RUNS.read_text(encoding="utf-8")))


def rows_of(study: str, full: bool, progress: Progress, data: str = "") -> list[Row]:
    """The rows of a study: trained now where `full` is asked for and a GPU is there, otherwise the stored ones."""
    found = [row for row in stored() if row["study"] == study and data in row["data"]]
    if full:
        import torch

        if torch.cuda.is_available():
            import dl_studies

            jobs = [job for job in dl_studies.jobs() if job[0].study == study and data in job[0].data]
            found = []
            for done, job in enumerate(jobs):
                found.append({name: value for name, value in dl_studies.do(job, "cuda").items() if value is not None})
                progress(done + 1, len(jobs), f"{job[0].data}, {job[0].method}")
            found = [row for row in found if "error" not in row]
    progress(1, 1, f"{len(found)} trainings")
    return found


def interval(values: Iterable[float]) -> tuple[float, float]:
    """Mean and half the width of the 95% t-interval; nan with fewer than three values."""
    found = list(values)
    if len(found) < 3:
        return statistics.fmean(found), math.nan
    half = float(stats.t.ppf(0.975, len(found) - 1)) * statistics.stdev(found) / math.sqrt(len(found))
    return statistics.fmean(found), half


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by the values of some columns, in order."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in names), []).append(row)
    return groups


def proofs(rows: Iterable[Row]) -> dict[tuple[Any, ...], float]:
    """The epsilon certified for Laplace and radial noise, by data, network, noise and the epsilon trained for."""
    names = ("data", "net", "method", "epsilon")
    return {tuple(row[name] for name in names): row["certified"] for row in rows if "delta_upper" in row}


def equal(full: bool, progress: Progress) -> Table:
    """Test accuracy at one certified epsilon, delta = 1e-5."""
    found = rows_of("equal", full, progress)
    proved = proofs(found)
    trained = [row for row in found if "delta_upper" not in row]
    rows, curves = [], {}
    for (data, net, method, epsilon), group in grouped(trained, "data", "net", "method", "epsilon").items():
        mean, half = interval(row["accuracy"] for row in group)
        own = group[0].get("certified", proved.get((data, net, method, epsilon)))
        rows.append((data, net, method, epsilon, own, mean, half, len(group)))
        if (data, net) == ("MNIST", "CNN") and epsilon is not None:
            curves.setdefault(method, []).append((epsilon, mean))
    drawn = {name: tuple(zip(*sorted(points), strict=True)) for name, points in curves.items() if len(points) > 1}
    return Table(
        headers=("data", "network", "noise", "epsilon", "certified", "accuracy", "95% +-", "seeds"),
        rows=tuple(rows),
        curves=tuple((name, x, y) for name, (x, y) in drawn.items()),
        axes=("certified epsilon", "test accuracy, MNIST CNN"),
        log=(True, False),
        note="learning rates were chosen once, by the best of four on another seed for the MNIST CNN, and hold for all",
    )


def accounted(full: bool, progress: Progress) -> Table:
    """What Laplace and radial noise are worth at the scale they were trained with, composed from their own losses."""
    found = [row for study in ("equal", "table-iv") for row in rows_of(study, full, progress) if "delta_upper" in row]
    rows = sorted(
        tuple(row[name] for name in ("data", "net", "method", "epsilon", "scale", "certified", "delta_upper"))
        for row in found
    )
    headers = ("data", "network", "noise", "epsilon", "noise multiplier", "certified", "delta at epsilon, at most")
    return Table(headers=headers, rows=tuple(rows))


def gain(epsilon: float) -> tuple[float, float]:
    """Accuracy of optimal less SPR per-layer noise on the MNIST CNN, paired by seed: mean and half of the interval."""
    groups = grouped(stored(), "study", "data", "net", "epsilon", "method")
    pair = [groups["equal", "MNIST", "CNN", epsilon, f"{shape} per layer"] for shape in ("optimal", "SPR")]
    by_seed = [{row["seed"]: row["accuracy"] for row in group} for group in pair]
    return interval(by_seed[0][seed] - by_seed[1][seed] for seed in by_seed[0])


def windows(full: bool, progress: Progress) -> Table:
    """Angle windows at smaller learning rates, epsilon 1."""
    rows = []
    for key, group in grouped(rows_of("windows", full, progress), "data", "net", "rate").items():
        accuracies = [row["accuracy"] for row in group]
        rows.append((*key, group[0]["certified"], statistics.fmean(accuracies), min(accuracies), max(accuracies)))
    return Table(headers=("data", "network", "rate", "certified", "accuracy", "least", "most"), rows=tuple(rows))


def energy(full: bool, progress: Progress) -> Table:
    """E |n|^2 of SPR over optimal per-layer noise: of the laws used, and K sum C_m^2/(sum C_m sqrt(K_m))^2."""
    from dl_nets import build

    from shapedp.torch import GaussianNoise, Layout, PerLayer

    rows = []
    for net in ("CNN", "GeoDP CNN", "LR", "MLP", "embedding", "ResNet-20"):
        layout = Layout.of(build(net))
        sizes, blocks = layout.layer_sizes, PerLayer(1.0).sensitivity(layout)
        law = {shape: GaussianNoise(shape).law(blocks, layout, 1.0) for shape in ("spr", "optimal")}
        closed = sum(sizes) * len(sizes) / sum(math.sqrt(size) for size in sizes) ** 2
        rows.append((net, sum(sizes), len(sizes), law["spr"].second_moment / law["optimal"].second_moment, closed))
        progress(len(rows), 6, net)
    return Table(headers=("network", "parameters", "layers", "SPR / optimal", "closed form"), rows=tuple(rows))


def movielens(full: bool, progress: Progress) -> list[Row]:
    """Both trainings on MovieLens, stored or now, on whatever device there is; 2 epochs unless `full`.

    Raises MissingDataError where the file is not at hand: no training on it can be stored without it.
    """
    load_movielens_1m()
    import dl_studies
    import torch

    found = [row for row in stored() if row["study"] == "product" and row["data"] == "MovieLens"]
    if found and not full:
        return found
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for run in dl_studies.published("MovieLens"):
        row = dl_studies.do((run if full else replace(run, epochs=2), "", 0), device)
        if "error" in row:
            raise RuntimeError(row["error"])
        found.append(row)
        progress(len(found), 2, f"MovieLens, {run.method}")
    return found[-2:]


def figure(data: str) -> Callable[[bool, Progress], Table]:
    """Accuracy over epochs of Gaussian and product noise at the settings of table 12."""

    def run(full: bool, progress: Progress) -> Table:
        measure = "RMSE" if data == "MovieLens" else "accuracy"
        try:
            found = movielens(full, progress) if data == "MovieLens" else rows_of("product", full, progress, data)
        except MissingDataError:
            card = CARDS["movielens_1m"]
            told = f"{card.title}: no ml-1m.zip and no ratings.dat at hand; {card.licence}; from {card.source}"
            return Table(headers=("data",), rows=((told,),), state=ABSENT)
        rows, curves, pairs = [], [], []
        for row in found:
            claimed = row.get("claimed") or ("", "")
            holds = f"certified, epsilon {row['certified']:.4g}" if "certified" in row else row["verdict"]
            least = row.get("delta_at_least", "")
            rows.append((row["method"], row["records"], row["epochs"], row[measure.lower()], *claimed, holds, least))
            x, y = zip(*((one["epoch"], one["test"]) for one in row["curve"]), strict=True)
            curves.append((row["method"], tuple(map(float, x)), y))
            worth = row["claimed"] if "claimed" in row else (row["certified"],)
            own = dict(zip(("epsilon", "delta"), worth, strict=False))
            own |= {"test": row[measure.lower()], "train": row["curve"][-1]["train"]}
            printed = PRINTED[data][row["method"] != "DP"]
            pairs += [(f"{row['method']}, {name}", own[name], value) for name, value in printed.items()]
        return Table(
            headers=("noise", "records", "epochs", measure, "epsilon claimed", "delta claimed", "holds", "delta >="),
            rows=tuple(rows),
            curves=tuple(curves),
            axes=("epoch", f"test {measure}"),
            log=(False, False),
            note="one training each; delta >= is what one step gives away at the epsilon claimed for all of them",
            **compared(pairs, 0.02),
        )

    return run


def table_4(full: bool, progress: Progress) -> Table:
    """max(AUC, 1/2) of black-box attacks with a shadow model, mean and deviation over repetitions."""
    rows, pairs = [], []
    for (data, method), group in grouped(rows_of("table-4", full, progress), "data", "method").items():
        areas = [row["tailored_auc"] for row in group]
        printed = TABLE_4[data][method != "DP"]
        rows.append((data, method, statistics.fmean(areas), statistics.stdev(areas), len(areas), printed))
        pairs.append((f"{data}, {method}", statistics.fmean(areas), printed))
    if "MovieLens" not in {row[0] for row in rows}:
        rows.append(("MovieLens", "both", "data not at hand", "", 0, 0.50))
    return Table(
        headers=("data", "noise", "tailored AUC", "deviation", "repetitions", "printed"),
        rows=tuple(rows),
        note="networks trained on half of 20,000 records (CIFAR-10: 8,000) for 20 epochs (10), attacked on both halves",
        **compared(pairs, 0.02),
    )


def membership(full: bool, progress: Progress) -> Table:
    """Both attacks on certified networks (epsilon 2) and on networks trained without noise."""
    rows = []
    for row in rows_of("membership", full, progress):
        power = {one["rate"]: one["found"] for one in row["powers"]}
        rows.append((row["data"], row["method"], row.get("epsilon", "none"), row["attack"], row["auc"], row["lower"],
                     row["upper"], power[0.001], power[0.01], row["train_accuracy"], row["accuracy"]))  # fmt: skip
    headers = (
        "data",
        "noise",
        "epsilon",
        "attack",
        "AUC",
        "lower",
        "upper",
        "TPR at 0.1%",
        "TPR at 1%",
        "train",
        "test",
    )
    return Table(headers=headers, rows=tuple(rows))


def table_12(full: bool, progress: Progress) -> Table:
    """What the settings claim for product noise, and the exact epsilon of their Gaussian noise at 1e-5."""
    rows, pairs = [], []
    for data, (samples, batch, epochs, sigma, epsilon, k) in SETTINGS.items():
        steps = epochs * (samples // batch)
        claimed = he_theorem_3(*amplify(epsilon, 1e-10, batch / samples), steps, 1e-8)[0]
        exact = compose([(SubsampledLoss(GaussianLoss(1 / sigma), batch / samples, "poisson"), steps)])
        gaussian = exact.epsilon(1e-5).upper
        prv, product = (one["epsilon"] for one in PRINTED[data])
        rows.append((data, samples, batch, epochs, sigma, epsilon, k, claimed, product, gaussian, prv))
        pairs += [(f"{data}, product noise", claimed, product), (f"{data}, Gaussian", gaussian, prv)]
        progress(len(rows), len(SETTINGS), data)
    return Table(
        headers=("data", "samples", "batch", "epochs", "sigma", "epsilon of a step", "k", "product noise claims",
                 "printed", "Gaussian, exact", "PRV printed"),
        rows=tuple(rows),
        note="delta 1e-5; what product noise claims follows from its steps' claims, each of which is false",
        **compared(pairs, 0.01),
    )  # fmt: skip


def table_iv(full: bool, progress: Progress) -> Table:
    """ResNet-20 with group norm on 10,000 images of CIFAR-10, sampling rate 0.02, 100 epochs (and 20)."""
    rows, pairs = [], []
    found = rows_of("table-iv", full, progress)
    proved, trained = proofs(found), [row for row in found if "delta_upper" not in row]
    order = ("flat Gaussian", "optimal per layer", "SPR per layer", "optimal per value", "SPR per value", "Laplace",
             "SPR Laplace", "pure Laplace, i.i.d.", "pure Laplace, i.n.i.d.", "pure Laplace, SPR")  # fmt: skip
    groups = grouped(trained, "method", "epsilon", "delta", "epochs", "rate")
    for key in sorted(groups, key=lambda key: (-key[1], order.index(key[0]), -key[3], -key[4])):
        method, epsilon, delta, epochs, rate = key
        group = groups[key]
        holds = group[0].get("certified", proved.get(("CIFAR-10", "ResNet-20", method, epsilon), group[0].get("pure")))
        accuracies = [100 * row["accuracy"] for row in group]
        mean, half = interval(accuracies)
        printed = TABLE_IV[method][epsilon == 8.0] if method in TABLE_IV else ""
        rows.append((method, epsilon, delta, epochs, rate, holds, mean, half, len(group), printed))
        if printed and (epochs, rate) == (100, 1.0):
            pairs.append((f"{method}, epsilon {epsilon:g}", mean, printed))
    why = "a fifth of the images, group norm, no rows at delta 4e-10; " + compared(pairs, 0.05)["why"]
    headers = (
        "noise", "epsilon", "delta", "epochs", "rate", "certified", "accuracy, %", "95% +-", "seeds", "printed, %"
    )  # fmt: skip
    return Table(headers=headers, rows=tuple(rows), state=DIFFERS, why=why)


def geodp_table_2(full: bool, progress: Progress) -> Table:
    """Table 2 of the GeoDP paper: accuracy of the best of three learning rates, for every row alike."""
    rows, pairs = [], []
    found = grouped(rows_of("geodp-table-2", full, progress), "method", "batch", "beta", "scale")
    for (method, batch, beta), printed in GEODP.items():
        for sigma, value in zip((1.0, 10.0), printed, strict=True):
            best = max(found[method, batch, beta, sigma], key=lambda row: row["accuracy"])
            exact = best.get("certified") or _verdict(batch, beta, sigma, method.endswith("AUTO-S"))
            rows.append((method, batch, beta or "", sigma, best["accuracy"], value, best["rate"], exact))
            pairs.append((f"{method}, B {batch}, sigma {sigma:g}", best["accuracy"], value))
    return Table(
        headers=("noise", "B", "beta", "sigma", "accuracy", "printed", "rate", "certified epsilon"),
        rows=tuple(rows),
        note="20 epochs, clip 0.1, 21,840 parameters; Poisson batches",
        **compared(pairs, 0.01),
    )


def _verdict(batch: int, beta: float, sigma: float, automatic: bool) -> str:
    """What one step's claim is worth, by computation."""
    step = geodp(dim=21_840, sensitivity=0.1, epsilon=noise_multiplier(1.0, 1e-5) / sigma, delta=1e-5, batch=batch,
                 beta=beta, sigma=sigma, automatic=automatic)  # fmt: skip
    return f"a step is {step.certificate.verdict}"


def quick(full: bool, progress: Progress) -> Table:
    """One short training of each kind on 1,000 images of MNIST, on the CPU: that everything runs."""
    import dl_studies

    jobs, rows = dl_studies.quick(), []
    for done, job in enumerate(jobs):
        row = dl_studies.do(job, "cpu", 1_000)
        rows.append((row["method"], job[1] or "training", row.get("error") or row["accuracy"]))
        progress(done + 1, len(jobs), row["method"])
    absent = any("MissingDataError" in str(row[2]) for row in rows)
    return Table(headers=("noise", "what", "accuracy"), rows=tuple(rows), state=ABSENT if absent else COMPUTED)


ITEMS = (
    Item("equal-epsilon", "Accuracy at equal certified epsilon", equal),
    Item("accounted", "Laplace and radial noise, accounted for by their own losses", accounted),
    Item("windows", "Angle windows at smaller learning rates", windows),
    Item("energy", "Energy of SPR over optimal per-layer noise", energy),
    Item("membership", "Membership inference on certified networks", membership),
    Item("figure-7", "DP-SGD on MNIST", figure("MNIST")),
    Item("figure-8", "DP-SGD on CIFAR-10", figure("CIFAR-10")),
    Item("figure-15", "DP-SGD on Adult", figure("Adult")),
    Item("figure-16", "DP-SGD on IMDb", figure("IMDb")),
    Item("figure-17", "DP-SGD on MovieLens", figure("MovieLens")),
    Item("table-4", "Tailored AUC of black-box membership inference", table_4),
    Item("table-12", "Settings of DP-SGD and what they claim", table_12),
    Item("table-iv", "ResNet-20 with i.i.d. and i.n.i.d. noise", table_iv),
    Item("geodp-table-2", "GeoDP against DP on an MNIST network", geodp_table_2),
    Item("quick", "One short training of each kind", quick),
)
