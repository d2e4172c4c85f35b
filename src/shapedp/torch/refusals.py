"""The longer messages of what a training refuses; see `boundary.refusals`."""

from functools import partial

from shapedp.boundary import refusals

refusal = partial(refusals.refusal, "torch")
