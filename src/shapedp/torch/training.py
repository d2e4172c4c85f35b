"""One private training: records' gradients are clipped and summed, noise is added once a step, steps are counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch import distributed as dist

from shapedp.accounting import Plan
from shapedp.boundary.values import plain
from shapedp.mechanisms.watch import is_watched, watched
from shapedp.noise import Gaussian
from shapedp.numerics.outward import ABOVE_8192
from shapedp.privacy import Bracket, Certificate, GaussianLoss, loss_of
from shapedp.sampling import Source
from shapedp.torch import gpu
from shapedp.torch.accountant import Account, BudgetError
from shapedp.torch.clips import Clip
from shapedp.torch.detour import RecordError, without_frames
from shapedp.torch.gradients import Gradients, summed_rows
from shapedp.torch.people import People
from shapedp.torch.plan import TrainingPlan
from shapedp.torch.published import Published
from shapedp.torch.refusals import refusal

if TYPE_CHECKING:
    from shapedp.torch.overtime import Stream


@dataclass(frozen=True)
class Processes:
    """The processes of a training; alone where torch.distributed is not initialised."""

    rank: int = 0
    count: int = 1

    @classmethod
    def current(cls) -> Processes:
        """Those of the default group, if there is one."""
        if not (dist.is_available() and dist.is_initialized()):
            return cls()
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def first(self) -> bool:
        """Whether this one draws the noise."""
        return self.rank == 0

    def sum_at_first(self, values: Tensor) -> Tensor:
        """The sum over all processes; meaningful in the first only."""
        if self.count > 1:
            dist.reduce(values, dst=0)
        return values

    def from_first(self, values: Tensor) -> Tensor:
        """What the first process holds."""
        if self.count > 1:
            dist.broadcast(values, src=0)
        return values

    def largest(self, value: int) -> int:
        """The largest of a number over all processes."""
        if self.count == 1:
            return value
        held = torch.tensor([value], device="cuda" if dist.get_backend() == "nccl" else "cpu")
        dist.all_reduce(held, op=dist.ReduceOp.MAX)
        return int(held)

    def share_model(self, model: nn.Module) -> None:
        """Parameters and buffers as the first process has them."""
        if self.count > 1:
            with torch.no_grad():
                for value in (*model.parameters(), *model.buffers()):
                    dist.broadcast(value, src=0)


@dataclass(frozen=True)
class Progress:
    """What `progress` reports: steps taken and planned, and the epsilon spent so far at `delta`, as a bracket.

    Examples
    --------
    >>> import shapedp as sdp
    >>> print(sdp.torch.Progress(3, 10, sdp.privacy.Bracket(0.5, 0.6), 1e-5))
    step 3/10: epsilon in [0.5, 0.6] at delta 1e-05
    """

    step: int
    steps: int | None
    epsilon: Bracket
    delta: float

    def __str__(self) -> str:
        total = "" if self.steps is None else f"/{self.steps}"
        low, high = self.epsilon.lower, self.epsilon.upper
        return f"step {self.step}{total}: epsilon in [{low:.4g}, {high:.4g}] at delta {self.delta:g}"


@dataclass(frozen=True)
class Part:
    """A piece of a draw, as the loader hands it out: its size, and whether it is the last or first one.

    `people` says which records are whose, where persons are protected; `origin` is the pass that the draw belongs to,
    where a pass is paid for as a whole; `turn` is the step that it is drawn for, where that matters. `kept` says at
    which places records stand, where a piece has a fixed number of places.
    """

    records: int
    last: bool
    first: bool = True
    people: People | None = None
    origin: object | None = None
    turn: int | None = None
    kept: Tensor | None = None


@dataclass(eq=False, repr=False)
class Training:
    """A private training at work: what `optimizer.privacy_` is. Made by `make_private` or `attach`, not by you.

    Ask it for `certificate`, `epsilon(delta)`, `steps`, `plan`, `planned` (its `TrainingPlan`) and `state_dict()`.

    Examples
    --------
    >>> import torch, shapedp as sdp
    >>> model = torch.nn.Linear(3, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> loader = torch.utils.data.DataLoader(torch.zeros(50, 3), batch_size=10)
    >>> private = sdp.torch.make_private(model, optimizer, loader, clip=1.0, noise_multiplier=1.0, delta=1e-5)
    >>> optimizer.privacy_
    Training(0 steps, delta=1e-05, noise=GaussianNoise scale 1, clip=Flat)

    Guarantee: each optimizer step adds the law of `mechanism` once to a sum in which one record's row lies in its
    sensitivity set; `certificate` is computed from the steps taken.
    """

    model: nn.Module
    planned: TrainingPlan
    account: Account
    processes: Processes
    source: Source
    mean: bool = True
    report: Callable[[Progress], None] | None = None
    report_every: int = 1
    total: Tensor | None = None
    part: Part | None = None
    flush: Callable[[], None] = lambda: None
    _rows: int = 0
    _pass: object | None = None  # the pass that was paid for last
    _released: int = 0  # steps of it

    def __post_init__(self) -> None:
        plain(self)
        plan: object = self.planned
        if not isinstance(plan, TrainingPlan) or not isinstance(self.model, nn.Module):
            raise TypeError("a training is made of a model and a TrainingPlan; make_private or attach makes it")
        self.layout, self.noise, self.scale, self.expected = plan.layout, plan.noise, plan.scale, plan.batch_size
        self.clip, self.mechanism = plan.clip, plan.mechanism  # these two may follow released answers
        self._stream: Stream | None = None
        self._turn = 0  # steps of this run
        named = dict(self.model.named_parameters())
        self._parameters = [named[name] for name in self.layout.names]

    def __repr__(self) -> str:
        account = self.account
        total = "" if self._limit is None else f" of {self._limit}"
        claim = f", delta={account.delta:g}" if account.delta is not None else ""
        claim = f", epsilon={account.epsilon:g}{claim}" if account.epsilon is not None else claim
        if account.taken in account._spent:
            claim += f", spent {account._spent[account.taken]}"
        noise = f"{type(self.noise).__name__} scale {self.scale:.4g}"
        return f"Training({self.steps}{total} steps{claim}, noise={noise}, clip={type(self.clip).__name__})"

    def __reduce__(self) -> Any:
        raise TypeError("a training holds raw sums of gradients: save optimizer.privacy_.state_dict() instead")

    # What users ask.

    @property
    def certificate(self) -> Certificate:
        """The claim, computed for the noise and the steps of this training."""
        return self.account.certificate(early=isinstance(self.noise, Published))

    @property
    def plan(self) -> Plan:
        """The steps taken so far (all planned ones before the first)."""
        return self.account.plan()

    @property
    def steps(self) -> int:
        """The number of steps taken (with noise over time by this run); a pass before the present one counts whole."""
        if self.planned.correlated is not None:
            return self._turn
        batches = self.planned.batches
        return self.account.taken * batches - (batches - self._released if self._pass is not None else 0)

    @property
    def turn(self) -> int:
        """The number of the step that comes next in this run."""
        return self._turn

    def epsilon(self, delta: float | None = None) -> Bracket:
        """The epsilon spent so far, as a bracket."""
        return self.account.spent(delta)

    def state_dict(self) -> dict[str, Any]:
        """The account and the clip, for a checkpoint beside the model's and the optimizer's."""
        return {"account": self.account.state_dict(), "clip": self.clip.state()}

    def load_state_dict(self, state: Any) -> None:
        """Go on from a checkpoint."""
        if not isinstance(state, dict) or not {"account", "clip"} <= set(state):
            raise ValueError("not the state of a private training: pass what optimizer.privacy_.state_dict() returned")
        self.account.load_state_dict(state["account"])
        self.account.taken = self.processes.largest(self.account.taken)
        self._set_clip(self.clip.with_state(state["clip"]))

    # What the loader, the recorder and the optimizer tell.

    @without_frames
    def receive(self, part: Part) -> None:
        """The loader hands out a piece of a draw; those of an earlier draw that was left before its end are dropped."""
        self.flush()
        if part.first:
            waiting = self.total is not None and self.part is not None and self.part.last
            self._drop()
            if waiting:
                raise RuntimeError(refusal("step-missed"))
        elif self.part is None or self.part.last:
            raise RuntimeError("a piece of a draw came without those before it: go on with the next draw")
        else:
            self._check_rows(self.part)
        if part.turn is not None and part.turn != self._turn:
            self._drop()
            raise RuntimeError(refusal("correlated-turn"))
        self.part, self._rows = part, 0

    def add(self, records: int, gradients: Gradients, scale: float) -> None:
        """Clip the gradients of some records of the piece and add them up."""
        if self.part is None:
            raise RuntimeError("gradients arrived without a batch: iterate over the loader that make_private returned")
        self._rows += records
        if self._rows > max(self.part.records, 1):
            self._drop()
            raise RecordError(refusal("more-rows"))
        if self.part.records == 0:
            return
        if self.part.people is not None:
            if records != self.part.records:
                self._drop()
                raise RecordError(refusal("person-split"))
            records, gradients = len(self.part.people.sizes), self.part.people.together(gradients)
        kept = None if self.part.kept is None else self.part.kept[self._rows - records : self._rows]
        rows = summed_rows(self.clip, self.layout, records, gradients, scale, kept)
        self.total = rows if self.total is None else self.total.add_(rows)

    def has_records(self) -> bool:
        """Whether the piece at hand is not empty."""
        return self.part is not None and self.part.records > 0

    @without_frames
    def before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Put the private gradient in place; on all but the last piece of a draw leave none, so that nothing moves."""
        if any(one is not None for one in (*args[1:], *kwargs.values())):
            raise TypeError("a private optimizer takes no closure: call backward() first, then step()")
        self._check_parameters(optimizer)
        self.flush()
        if self.part is None:
            raise RuntimeError(refusal("no-batch"))
        self._check_rows(self.part)
        if not self.part.last:
            for parameter in self._parameters:
                parameter.grad = None
            return
        flat = self._release()
        for parameter, value in zip(self._parameters, self.layout.split(flat), strict=True):
            parameter.grad = value.to(parameter.dtype)

    # How.

    def _drop(self) -> None:
        """Forget the draw: nothing of it was released."""
        self.total, self.part, self._rows = None, None, 0

    def _check_rows(self, part: Part) -> None:
        """Each record of a piece adds one row."""
        if not self.planned.check_records or self._rows == part.records or part.records == 0:
            return
        found = self._rows
        self._drop()
        raise RecordError(refusal("fewer-rows") if found else refusal("no-gradient"))

    def _check_parameters(self, optimizer: Any) -> None:
        if not all(parameter.requires_grad for parameter in self._parameters):
            raise RuntimeError("a parameter was frozen after make_private: freeze first, then call make_private")
        known = {id(parameter) for parameter in self._parameters}
        others = [p for group in optimizer.param_groups for p in group["params"] if id(p) not in known]
        if any(parameter.requires_grad for parameter in others):
            raise RuntimeError(refusal("parameter-not-private"))
        for parameter in others:
            parameter.grad = None  # one left from before it was frozen would move it without noise

    def _release(self) -> Tensor:
        """Sum over processes, noise once, the mean gradient."""
        origin = None if self.part is None else self.part.origin
        total, self.total, self.part = self.total, None, None
        if total is None:
            total = torch.zeros(self.mechanism.law.dim, dtype=torch.float64, device=self._parameters[0].device)
        total = self.processes.sum_at_first(total)
        self._charge(origin)
        noisy = self._noisy(total) if self.processes.first else torch.empty_like(total, dtype=torch.float32)
        noisy = self.processes.from_first(noisy)
        answer = noisy / self.expected
        flat = self.clip.gradient(answer, self.layout)
        following = self.clip.updated(answer, self.layout)
        if following is not self.clip:
            self._set_clip(following)
        if self.report is not None and self.processes.first and self.steps % self.report_every == 0:
            self.report(Progress(self.steps, self._limit, self.epsilon(), self.account.delta or 0.0))
        return flat if self.mean else flat * self.expected

    @property
    def _limit(self) -> int | None:
        if self.planned.correlated is not None:
            return self.planned.steps
        return None if self.account.limit is None else self.account.limit * self.planned.batches

    def _charge(self, origin: object | None) -> None:
        """Charge this step; the first step of a pass, or of a unit of noise over time, is charged for all of it."""
        kept = self.planned.correlated
        if kept is not None and self._turn >= kept.steps:
            raise BudgetError(refusal("correlated-at-end", steps=kept.steps))
        if self._turn % kept.unit == 0 if kept is not None else origin is None or origin is not self._pass:
            self.account.charge()
            self._pass, self._released = origin, 0
        self._released += 1
        self._turn += 1

    def _correlated(self, total: Tensor) -> Tensor:
        """The sum with noise that depends on that of earlier steps."""
        from shapedp.torch.overtime import Stream

        law, kept = self.mechanism.law, self.planned.correlated
        assert isinstance(law, Gaussian)
        assert kept is not None
        if self._stream is None:
            self._stream = Stream(kept, law)
        sums = total.detach().cpu().numpy()
        noisy = self._stream.release(sums, self.source, lambda query, draw: watched(self.mechanism, query, draw))
        return torch.from_numpy(np.ascontiguousarray(noisy)).to(total.device, torch.float32)

    def _noisy(self, total: Tensor) -> Tensor:
        """The float64 sum with noise, rounded to float32 after that."""
        if is_watched():
            self.account.secure = False
        law = self.mechanism.law
        if self.planned.correlated is not None:
            return self._correlated(total)
        if self.planned.gpu_noise and gpu.at_hand(total) and isinstance(law, Gaussian) and not is_watched():
            return gpu.draw(law, total, self.source)
        query = total.detach().cpu().numpy()
        noisy = watched(self.mechanism, query, lambda: law.add_to(query, self.source))
        return torch.from_numpy(np.ascontiguousarray(noisy)).to(total.device, torch.float32)

    def _set_clip(self, clip: Clip) -> None:
        """Another clip, chosen from released answers only, under the loss that was planned."""
        if type(clip) is not type(self.clip):
            raise TypeError(f"the clip was {type(self.clip).__name__}, the new one is {type(clip).__name__}")
        law, sensitivity = self.planned.law_of(clip, ABOVE_8192)
        mechanism = replace(self.mechanism, law=law, sensitivity=sensitivity)
        planned, found = self.account.step.subject.loss, loss_of(law, sensitivity)
        if not (isinstance(planned, GaussianLoss) and isinstance(found, GaussianLoss) and found.mu <= planned.mu):
            raise ValueError("a clip may change during training with Gaussian noise that follows it, and no other")
        self.clip, self.mechanism = clip, mechanism
