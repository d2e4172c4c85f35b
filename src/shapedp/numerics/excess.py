"""How much a radial density exceeds a multiple of its own translate: one integral, enclosed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shapedp.numerics.arrays import Floats
from shapedp.numerics.gammatail import deviance, gamma_below, log_peak, log_radii
from shapedp.numerics.outward import (
    ABOVE_8,
    ABOVE_WIDE,
    ROUNDINGS_8,
    ROUNDINGS_16,
    ROUNDINGS_64,
    ROUNDINGS_512,
    ROUNDINGS_8192,
    UNIT,
    WIDE,
)
from shapedp.numerics.quadrature import ellipse_axes, gauss_error, legendre
from shapedp.numerics.sphere import CAP_ERROR, Cap

Ints = NDArray[np.intp]

_POINTS = 16
_REACH = 27.0  # the radius is followed until its density has fallen by e^-729
_STEP = 1.5
_FLOOR = 1e-300
_HUGE = 1e250
_LEAST_BUDGET = 1e-270
_ROUNDS = 40
_CHUNK = 128  # levels at a time: arrays that stay in the cache
_MOST = 512
_OFF = 0.7  # where what was found is less than this part of the guess, a second look is worth its time
_FAR = 1e-7  # balls about the pole whose volumes are so nearly equal


def growth_of(exponent: float, eta: Floats) -> Floats:
    """A bound on |e^(exponent x) - 1| for complex x, Re x >= 0, |x| <= eta."""
    return np.expm1(exponent * eta) if exponent >= 0 else np.minimum(2.0, -exponent * eta)


@dataclass(frozen=True)
class _Panels:
    """Panels of the log-radius, each with the index of its level."""

    index: Ints
    centre: Floats
    half: Floats

    def take(self, mask: NDArray[np.bool_]) -> _Panels:
        return _Panels(self.index[mask], self.centre[mask], self.half[mask])

    def split(self, parts: int) -> _Panels:
        offsets = (2 * np.arange(parts) + 1) / parts - 1
        centres = (self.centre[:, None] + self.half[:, None] * offsets).ravel()
        return _Panels(np.repeat(self.index, parts), centres, np.repeat(self.half / parts, parts))


@dataclass(frozen=True)
class _Triangle:
    """Sides r, up, shift: y = r^b, eta = log(up/r), the two cosines, and the size of what they cancel.

    `unsure` bounds the relative error of eta, in units of 2^-53.
    """

    z: Floats
    y: Floats
    eta: Floats
    c1: Floats
    c2: Floats
    terms: Floats
    unsure: Floats


class ShiftExcess:
    """H(e) = integral of (g(|x|) - e^e g(|x + v|))_+ over R^dim, for the law g(r) ~ r^(a-dim) exp(-r^b), |v| = shift.

    With h = -log g, up(r) the solution of h(up) = h(r) + e, eta = log(up/r) and the triangle of sides r, up,
    shift, the substitution r2 = up(r1) in the second of the two integrals gives one:

        H = integral f_R(r) (P(X >= c1) - (up/r)^dim (up h'(up)/(r h'(r)))^-1 P(X >= c2)) dr,
        c1 = (up^2 - r^2 - shift^2)/(2 r shift),  c2 = (up^2 + shift^2 - r^2)/(2 up shift),

    and r^2 (1 - c1^2) = up^2 (1 - c2^2) lets both caps share one factor, as both Mills ratios share one normal
    density in the Gaussian profile. The variable is z = log(r^b/k), k = a/b.

    Guarantee: `bounds` encloses H, rounding included, for 0 < a <= dim, dim >= 2. The sum is Gauss-Legendre
    with the ellipse bound. In |Im z| <= Y < pi/2: h(up) = h(r) + e has an analytic solution with Re eta > 0
    and |eta(z)| <= eta(x) exp(|z - x|/cos Y), so c1 and c2 are Lipschitz with explicit constants; with
    c = p + i q, |1 - c^2|^2 = (1 - p^2)^2 + 2 q^2 (1 + p^2) + q^4 bounds the caps. Where no ellipse fits (the
    ends c1 = +-1 of the triangles), panels halve until a crude bound settles them.
    """

    def __init__(self, dim: int, a: float, b: float, shift: float) -> None:
        self.dim, self.b, self.shift = dim, b, shift
        self.k = a / b  # the shape of the gamma law of R^b
        self.slack = dim - a  # the strength of the pole of g at 0
        self._cap = Cap(dim)
        self._log_d = math.log(shift) - math.log(self.k) / b
        self._log_size = abs(math.log(shift)) + 2 * abs(math.log(self.k)) / b
        self._blur = 0.0 if Fraction(self.k) * Fraction(b) == Fraction(a) else UNIT * self.k
        self._log_peak = log_peak(self.k)
        self._edges = log_radii(self.k, np.arange(-_REACH, _REACH + _STEP / 2, _STEP))

    def _rise(self, z: Floats, y: Floats, level: Floats) -> Floats:
        """eta > 0 with slack eta + y (e^(b eta) - 1) = level: convex, so Newton from above never overshoots."""
        b, slack = self.b, self.slack
        log_y = z + math.log(self.k)
        with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
            eta = np.where(level > y, np.logaddexp(0.0, np.log(level) - log_y), np.log1p(level / y)) / b
            if slack == 0:
                return eta
            eta = np.minimum(level / (slack + b * y), eta)
            log_y, y, level = (np.broadcast_to(one, eta.shape) for one in (log_y, y, level))
            open_ = np.ones(eta.shape, dtype=np.bool_)
            for _ in range(60):
                eta[open_], more = self._newton(eta[open_], log_y[open_], y[open_], level[open_])
                open_[open_] = more
                if not more.any():
                    break
        return eta

    def _newton(self, eta: Floats, log_y: Floats, y: Floats, level: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """One step of `_rise`, and where it still moved: few radii near the pole take many steps."""
        size = self.b * eta
        grown = np.where(size > 1, np.exp(log_y + size) - y, y * np.expm1(np.minimum(size, 1.0)))
        step = (self.slack * eta + grown - level) / (self.slack + self.b * (grown + y))
        eta = eta - step
        return eta, ~(self.b * step * step <= 2e-16 * eta)

    def _triangle(self, z: Floats, level: Floats) -> _Triangle:
        """The triangle at log-radius z: c1 = t1 - t2, c2 = e^-eta (t1 + t2), both t positive."""
        y = self.k * np.exp(z)
        eta = self._rise(z, y, level)
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            log_t2 = self._log_d - z / self.b
            log_t1 = -log_t2 + np.where(eta > 20, 2 * eta, np.log(np.expm1(np.minimum(2 * eta, 40.0))))
            t1 = 0.5 * np.exp(z / self.b - self._log_d) * np.expm1(np.minimum(2 * eta, 40.0))
            t1 = np.where(eta > 20, 0.5 * np.exp(log_t1), t1)
            t2 = 0.5 * np.exp(log_t2)
            c1, terms = t1 - t2, t1 + t2
            beyond = np.minimum(log_t1, log_t2) > 600
            c1 = np.where(beyond, np.where(log_t1 > log_t2, _HUGE, -_HUGE), c1)
            terms = np.where(beyond & (np.abs(log_t1 - log_t2) > WIDE), _HUGE, terms)
            unsure = 8 + np.abs(z) + abs(math.log(self.k)) + self.b * eta
            return _Triangle(z, y, eta, c1, np.exp(-eta) * terms, terms, unsure)

    def _blurred(self, at: _Triangle) -> Floats:
        """How far rounding may move c1: near the largest loss of a law with b < 1 by more than 1."""
        size = 24 + 2 * self._log_size + 2 * np.abs(at.z) / self.b + (1 + 2 * at.eta) * at.unsure
        return np.asarray(UNIT * at.terms * size)

    @np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")
    def _values(self, z: Floats, level: Floats) -> tuple[Floats, Floats]:
        """The integrand in z and a bound on its rounding error: the caps err to either side, and one is subtracted."""
        at = self._triangle(z, level)
        eta, c1, c2 = at.eta, at.c1, at.c2
        fall = self.k * deviance(z)
        log_f = self._log_peak - fall
        inside = np.abs(c1) < 1
        size1, c2 = np.where(inside, np.abs(c1), 0.0), np.where(inside, np.minimum(c2, 1 - UNIT), 0.0)
        log_w = self._cap.log_weight(size1)
        cap1, cap2 = self._cap.scaled(size1), self._cap.scaled(c2)
        grown = self.b * np.exp(z + math.log(self.k) + self.b * eta)
        log_kappa = eta + np.log((self.slack + self.b * at.y) / (self.slack + grown))
        f, weighted = np.exp(log_f), np.exp(log_f + log_w)
        second = np.exp(log_f + log_w + log_kappa) * cap2
        positive = c1 >= 0
        first = np.where(positive, weighted * cap1, f - weighted * cap1)
        drift = self._blurred(at)
        base = CAP_ERROR + UNIT * (64 + 10 * fall + 4 * np.abs(log_w)) + self._blur * np.abs(z)
        edge1, edge2 = (1 - size1) * (1 + size1), (1 - c2) * (1 + c2)
        density = self._cap.density_at_equator
        hazard1 = np.where(positive, density / (cap1 * edge1), 2 * density * np.exp(log_w) / edge1)
        turn2 = np.minimum(density / (cap2 * edge2), 1 / np.maximum(c2, 1e-300)) * np.exp(-eta)
        moved1, moved2 = hazard1 * drift, ((self.dim - 1) * (size1 + drift) / edge1 + turn2) * drift
        bent = moved1 + moved2 > 1e-3  # to first order no longer
        moved1, moved2 = (np.where(bent, np.expm1(2 * (moved1 + moved2)), moved) for moved in (moved1, moved2))
        error = first * (base + moved1) + second * (base + 4 * UNIT * (1 + eta) * at.unsure + moved2)
        outside = np.where(positive, 0.0, f)
        lost = np.where(inside, drift > 0.25 * (1 - size1), np.abs(c1) - 1 <= drift)
        whole = f * (1 + 0.5 * np.exp(log_kappa)) * ABOVE_WIDE  # the integrand lies between -f kappa/2 and f
        error = np.where(lost, whole, np.where(inside, np.fmin(error, whole), outside * base))
        return np.where(inside, first - second, outside), error

    def _reach(self, at: _Triangle, wide: Floats, tall: Floats) -> tuple[Floats, Floats, Floats]:
        """Bounds on |eta|, on |c1 - c1(centre)| and on |c2 - c2(centre)| on ellipses of the given half-axes.

        c1' = -c1/b + p and c2' = -u' c2/b + e^-eta p with p = (r/(b shift)) (e^(2 eta) u' - 1), u' = d log up^b/dz.
        Near c1 = 1 the factors of 1 - c1 = w (1 + r + up)/(2 r), w = 1 + r - up (in shifts) say more: w' is
        (r/b) (1 - e^eta u'), which vanishes for the law exp(-r).
        """
        b, slack = self.b, self.slack
        cosine = np.cos(np.minimum(tall, 1.57))
        eta = np.minimum(at.eta * np.exp(wide / cosine), at.eta + math.sqrt(2) * wide / b)
        most, least = (b * self.k * np.exp(end) for end in (at.z + wide, at.z + b * at.eta - wide / cosine))
        rate = np.minimum((slack + most) / (slack + least), 1.0) / cosine
        radius = np.exp((at.z + wide) / b - self._log_d) / b
        if slack == 0:
            growth = growth_of(2 - b, eta)
        else:
            growth = np.expm1(2 * eta) * rate + np.minimum(math.sqrt(2), b * eta / cosine)
        p1 = radius * growth
        p2 = np.minimum(p1, radius * (np.exp(eta) * rate + 1))
        drift1 = np.expm1(wide / b) * np.abs(at.c1) + wide * np.exp(wide / b) * p1
        swing = np.exp(min(b, 1.0) * eta) * np.expm1(abs(1 - b) * eta)
        bend = (slack * np.expm1(eta) + most * swing) / ((slack + least) * cosine) if slack else growth_of(1 - b, eta)
        near = np.exp(self._log_d - (at.z - wide) / b)  # shift/r at most
        gap = 1 - np.exp(at.z / b - self._log_d) * np.expm1(at.eta)
        edge = wide * radius * bend * (0.5 * near + 0.5 * (1 + np.exp(eta)))
        edge += np.abs(gap) * wide * (0.5 * near / b + 0.5 * np.exp(eta) * np.minimum(math.sqrt(2) / b, eta / cosine))
        drift1 = np.fmin(drift1, edge)
        drift2 = np.expm1(wide * rate / b) * at.c2 + wide * np.exp(wide * rate / b) * p2
        return eta, drift1, drift2

    def _suprema(self, panels: _Panels, axes: tuple[Floats, Floats], level: Floats) -> tuple[Floats, ...]:
        """Logs of bounds on f, |f P(c1)|, |second term|, and on |1 - P(c1)| over ellipses of the given half-axes."""
        wide, tall = axes
        b, half = self.b, (self.dim - 1) / 2
        z = panels.centre[:, None]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            at = self._triangle(z, level[:, None])
            c1, c2 = at.c1, at.c2
            grown = b * np.exp(z + math.log(self.k) + b * at.eta)
            lost = np.where(b * at.eta > 1, grown - b * at.y, b * at.y * np.expm1(np.minimum(b * at.eta, 1.0)))
            lost = lost / (self.slack + grown)
            force = np.exp(z / b - self._log_d) / b * (np.expm1(2 * at.eta) * (1 - lost) - lost)
            turn1, turn2 = np.abs(force - c1 / b), np.abs(np.exp(-at.eta) * force - (1 - lost) * c2 / b)
            blur = 2 * self._blurred(at)
            turn1, turn2 = turn1 + blur, turn2 + np.exp(-at.eta) * blur
            disc = np.minimum(1.4, np.maximum(3 * panels.half, 0.4 * min(1.0, b)))[:, None]
            _, far1, far2 = self._reach(at, disc, disc)
            far1, far2 = far1 + blur, far2 + np.exp(-at.eta) * blur
            eta, drift1, drift2 = self._reach(at, wide, tall)
            cosine = np.cos(np.minimum(tall, 1.57))
            share = np.where(wide < disc, wide / disc, np.inf)
            curve = share * share / (1 - np.minimum(share, 1.0))
            q = np.fmin(drift1, tall * turn1 + far1 * curve)
            q2 = np.fmin(drift2, tall * turn2 + far2 * curve)
            drift1, drift2 = np.fmin(drift1, wide * turn1 + far1 * curve), np.fmin(drift2, wide * turn2 + far2 * curve)
            q, q2 = np.where(tall == 0, 0.0, q), np.where(tall == 0, 0.0, q2)
            near = np.clip(0.0, z - wide, z + wide)
            log_f = self._log_peak - self.k * deviance(near) + self.k * np.exp(z + wide) * 2 * np.sin(tall / 2) ** 2
            drift1, drift2 = drift1 + blur, drift2 + np.exp(-at.eta) * blur
            low, high = c1 - drift1, c1 + drift1
            most, least = np.maximum(np.abs(low), np.abs(high)), np.maximum(np.maximum(low, -high), 0.0)
            bulge = (2 * q * q * (1 + most * most) + q**4) / (1 - least * least) ** 2
            log_w = np.log1p(-least * least) + 0.5 * np.log1p(bulge)
            density = self._cap.density_at_equator
            side = density * q * np.exp((half - 1) * (log_w if half >= 1 else np.log1p(-most * most)))
            tail = np.where(low >= 0, 0.5 * np.exp(half * np.log1p(-(np.minimum(np.maximum(low, 0.0), 1.0) ** 2))), 1.0)
            rest = np.where(
                high <= 0, 0.5 * np.exp(half * np.log1p(-(np.minimum(np.maximum(-high, 0.0), 1.0) ** 2))), 1.0
            )
            low2, high2 = c2 - drift2, c2 + drift2
            most2 = np.maximum(np.abs(low2), high2)
            edge = 1 - most2 * most2
            bulge2 = (2 * q2 * q2 * (1 + most2 * most2) + q2**4) / edge**2
            scaled = np.where(low2 >= 0, 0.5, np.exp(-half * np.log(edge)))
            scaled = scaled + density * q2 / edge * np.exp(0.5 * max(half - 1, 0.0) * np.log1p(bulge2))
            convex = q2 <= low2  # Re c2^2 >= 0: the integral of Cap's third route is at most its value at 0
            scaled = np.where(convex, 0.5, np.where(most2 < 1, scaled, np.inf))
            second = eta - np.log(cosine) + half * log_w + np.log(scaled)
            fits = (most < 1) & (tall < 1.5)
            log_first = log_f + np.log(tail + side)
            log_second = log_f + second
            crude = log_f + eta + half * np.log1p(-(np.minimum(least, 1.0) ** 2)) - math.log(2)
        first, second = np.where(fits, log_first, np.inf), np.where(fits, log_second, np.inf)
        below, above = log_f + np.log(tail + 1e-320), log_f + np.log(rest + 1e-320)
        return np.where(tall < 1.5, log_f, np.inf), first, second, below, above, crude

    def bounds(
        self, levels: Floats, relative: float | Floats, absolute: float = 0.0, guess: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Lower and upper bounds on H at each level >= 0, aiming at a relative or absolute gap, the wider of both.

        `relative` may differ by level. A `guess` at H says how much work a level is worth; the bounds hold for any.
        """
        levels = np.asarray(levels, dtype=np.float64)
        flat, aims = levels.ravel(), np.broadcast_to(relative, levels.shape).ravel()
        about = None if guess is None else guess.ravel()
        lower, upper = np.zeros_like(flat), np.zeros_like(flat)
        for start in range(0, flat.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            scale = None if about is None else about[part]
            lower[part], upper[part] = self._bounds(flat[part], aims[part], absolute, scale)
        return lower.reshape(levels.shape), upper.reshape(levels.shape)

    def _bounds(self, levels: Floats, relative: Floats, absolute: float, scale: Floats | None) -> tuple[Floats, Floats]:
        lower, upper = np.zeros_like(levels), np.ones_like(levels)
        if self.slack == 0 and self.b <= 1:  # log g is Lipschitz: the loss never exceeds shift^b
            most = self.shift if self.b == 1 else self.shift**self.b * ABOVE_8
            upper = -np.expm1(np.minimum(levels - most, 0.0)) * ABOVE_8
        far, low, high = self._far(levels)
        lower[far], upper[far] = low, high
        todo = np.flatnonzero((upper > 1e-12) & ~far)
        guessed, scale = scale is not None, None if scale is None else scale[todo]
        before = np.full_like(levels, np.inf)
        for _ in range(3):
            if not todo.size:
                break
            low, high, middle = self._enclose(levels[todo], relative[todo], absolute, scale)
            lower[todo], upper[todo] = np.maximum(lower[todo], low), np.minimum(upper[todo], high)
            wide = upper[todo] - lower[todo] > np.maximum(relative[todo] * upper[todo], max(absolute, 1e-260))
            wide &= upper[todo] - lower[todo] < 0.5 * before[todo]
            before[todo] = upper[todo] - lower[todo]
            found = np.maximum(np.minimum(middle, 0.5 * (lower[todo] + upper[todo])), lower[todo])
            if guessed and scale is not None:  # the same work again would not come closer
                wide &= found < _OFF * scale
            scale, todo = found[wide], todo[wide]
        return lower, upper

    @np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")
    def _far(self, levels: Floats) -> tuple[NDArray[np.bool_], Floats, Floats]:
        """The levels so high that g > e^level g(. + v) on little but a ball about the pole, and bounds on H there.

        With slack log(shift/r) + shift^b = level, e = r/shift and t below, the balls of radii r e^-t and r e^t hold
        and are held by that set, as far as `_edges` reach; Q of a ball is its volume times a density between those
        at shift + r and shift - r.
        """
        b, slack, none = self.b, self.slack, np.zeros(0)
        if not slack > 0:
            return np.zeros(levels.shape, dtype=np.bool_), none, none
        power, last = self.shift**b, np.power(self.k * math.exp(self._edges[-1]), 1 / b)
        log_e = -(levels - power) / slack
        e = np.exp(log_e)
        t = 4 * e + power * (b * 2 ** max(b, 1.0) * e + 2 * np.exp(b * log_e)) / slack
        t += ROUNDINGS_64 * (1 + np.abs(log_e) + power / slack + self._log_size) * (1 + 1 / b)
        beyond = max((2**b - 1) * power, (self.shift + last) ** b - last**b)
        far = (
            (t * self.dim < _FAR) & (b * (self._log_d + log_e) < -1) & (levels > 1.01 * (slack * math.log(2) + beyond))
        )
        far &= -log_e > 1.01 + b * 2 ** max(b, 1.0) * power / slack
        if not far.any():
            return far, none, none
        z, t = b * (self._log_d + log_e[far]), t[far]
        near, away = np.maximum(z - b * t, self._edges[0]), np.maximum(z + b * t, self._edges[0])
        (least, miss), (most, more) = gamma_below(self.k, near), gamma_below(self.k, away)
        shell = [b / self.dim * np.exp(self._log_peak - self.k * deviance(end)) for end in (near, away)]
        blur = ROUNDINGS_8192 + UNIT * 20 * self.k * deviance(near) + self._blur * np.abs(near)
        lower = least * (1 - blur) - miss - shell[1] * np.exp(2 * slack * t) * (1 + blur)
        lower = np.where(z - b * t > self._edges[0], np.maximum(lower, 0.0), 0.0)
        end = self._edges[-1:]
        right = np.exp(self._log_peak - self.k * deviance(end)) / (self.k * np.expm1(end))
        upper = most * (1 + blur) + more + right - shell[0] * np.exp(-2 * slack * t) * (1 - blur) * (lower > 0)
        return far, lower, upper + _FLOOR

    def _enclose(
        self, levels: Floats, relative: Floats, absolute: float, scale: Floats | None
    ) -> tuple[Floats, Floats, Floats]:
        total, below, above, panels, estimate, bound = self._layout(levels)
        budget = np.maximum(relative / 64 * (estimate if scale is None else scale), max(absolute / 64, _LEAST_BUDGET))
        small = bound <= 0.125 * budget[panels.index]
        np.add.at(above, panels.index[small], bound[small])
        np.add.at(below, panels.index[small], bound[small])
        panels = panels.take(~small)
        accepted: list[_Panels] = []
        ones: list[_Panels] = []
        add = np.add.at
        for turn in range(_ROUNDS):
            if not panels.index.size:
                break
            level = levels[panels.index]
            if scale is None and turn:
                middle = self._values(panels.centre[:, None], level[:, None])[0][:, 0] * panels.half
                seen = np.bincount(panels.index, np.maximum(middle, 0.0), levels.size)
                budget = np.maximum(budget, relative / 64 * seen)
            allowed = budget[panels.index]
            wide, tall = ellipse_axes(panels.half)
            wide = np.concatenate([panels.half[:, None], wide], axis=1)
            tall = np.concatenate([np.zeros_like(panels.half)[:, None], tall], axis=1)
            log_f, log_first, log_second, log_tail, log_rest, log_crude = self._suprema(panels, (wide, tall), level)
            with np.errstate(over="ignore", invalid="ignore"):
                width = 2 * panels.half
                tail, rest, crude = (width * np.exp(part[:, 0]) for part in (log_tail, log_rest, log_crude))
                suprema = np.exp(log_first[:, 1:]) + np.exp(log_second[:, 1:])
                error = gauss_error(panels.half, np.where(np.isnan(suprema), np.inf, suprema), _POINTS)
                error_one = gauss_error(panels.half, np.exp(log_f[:, 1:]), _POINTS)
            last = turn == _ROUNDS - 1
            crowded = np.bincount(panels.index, minlength=levels.size)[panels.index] > _MOST
            crowded &= panels.index.size > _MOST * (levels.size + 8)  # levels that cannot be settled hold up no other
            zero = tail + crude <= allowed
            good = ~zero & (error <= allowed)
            missed = rest + crude + error_one
            one = ~zero & ~good & (missed <= allowed)
            stuck = (panels.half < ROUNDINGS_512 * (1 + np.abs(panels.centre))) | crowded | last
            zero |= stuck & ~good & ~one
            for mask, up, down in ((zero, tail, crude), (good, error, error), (one, error_one, missed)):
                add(above, panels.index[mask], up[mask])
                add(below, panels.index[mask], down[mask])
            accepted.append(panels.take(good))
            ones.append(panels.take(one))
            panels = panels.take(~(zero | good | one)).split(2 if turn < 3 else 4)
            if last:
                break
        for parts, whole in ((accepted, False), (ones, True)):
            if any(part.index.size for part in parts):
                index, value, spread = self._integrated(parts, levels, whole)
                for sums, more in ((total, value), (above, spread), (below, spread)):
                    add(sums, index, more)
        floor = _FLOOR + ROUNDINGS_16 * np.abs(total)
        low, high = total - below - floor, total + above + floor
        low, high = np.where(np.isnan(low), 0.0, low), np.where(np.isnan(high), 1.0, high)
        return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0), np.where(np.isnan(total), 0.0, total)

    def _integrated(self, parts: list[_Panels], levels: Floats, whole: bool) -> tuple[Ints, Floats, Floats]:
        """The level of each panel, the integral over it and a bound on its rounding; `whole`: of the density alone."""
        nodes, weights = legendre(_POINTS)
        index = np.concatenate([part.index for part in parts])
        centre = np.concatenate([part.centre for part in parts])[:, None]
        half = np.concatenate([part.half for part in parts])[:, None]
        z = centre + half * nodes
        if whole:
            value = np.exp(self._log_peak - self.k * deviance(z))
            error = value * (UNIT * (64 + 10 * self.k * deviance(z)) + self._blur * np.abs(z))
        else:
            value, error = self._values(z, levels[index][:, None])
        value, error = half * weights * value, half * weights * error
        return index, value.sum(axis=1), error.sum(axis=1) + ROUNDINGS_8 * np.abs(value).sum(axis=1)

    def _layout(self, levels: Floats) -> tuple[Floats, Floats, Floats, _Panels, Floats, Floats]:
        """The mass left of the panels, the errors of both tails, the first panels, a rough value, and what the
        radius alone says about each panel."""
        z = self._edges
        count = z.size
        value, _ = self._values(np.broadcast_to(z, (levels.size, count)), levels[:, None])
        estimate = np.maximum(np.sum(0.5 * (value[:, 1:] + value[:, :-1]) * np.diff(z), axis=1), 0.0)
        estimate = np.maximum(estimate, np.max(np.abs(value), axis=1) * 1e-3)
        at = self._triangle(z[None, :], levels[:, None])
        c1, eta, margin = at.c1, at.eta, 1e-12 * (1 + at.terms)
        inner = c1 <= -1 - margin  # up + r grows with r: all smaller radii lie inside too
        outer = c1 >= 1 + margin  # up - r is unimodal: so does everything between two such points
        first = np.where(inner.any(axis=1), count - 1 - np.argmax(inner[:, ::-1], axis=1), 0)
        rows = np.arange(levels.size)
        inside = inner[rows, first]
        mass, error = gamma_below(self.k, z[first])
        total = np.where(inside, mass, 0.0)
        estimate = np.maximum(estimate, total)
        spread = np.where(inside, error + mass * self._blur * np.abs(z[first]), 0.0)
        fresh = (np.arange(count - 1) >= first[:, None]) & ~(outer[:, 1:] & outer[:, :-1])
        where = np.nonzero(fresh)
        panels = _Panels(where[0], (0.5 * (z[1:] + z[:-1]))[where[1]], (0.5 * np.diff(z))[where[1]])
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            log_f = self._log_peak - self.k * deviance(z)
            peak = np.where(z[1:] * z[:-1] <= 0, self._log_peak, np.maximum(log_f[1:], log_f[:-1]))
            bound = np.diff(z)[where[1]] * np.exp(peak[where[1]]) * (1 + 0.5 * np.exp(eta[where[0], where[1]]))
            gone = ~inside & ~outer[:, 0] if self.slack == 0 else ~inside
            left = np.where(gone, np.exp(log_f[0]) / (-self.k * np.expm1(z[0])), 0.0)
            slope = -self.k * math.expm1(z[0]) - 1 / self.b
            left_second = np.where(gone, np.exp(log_f[0] + eta[:, 0]) / (2 * slope) if slope > 0 else 1.0, 0.0)
            right = math.exp(log_f[-1]) / (self.k * math.expm1(z[-1]))
            up = z[-1] + self.b * eta[:, -1]
            right_second = np.exp(self._log_peak + levels - self.k * deviance(up)) / (self.k * np.expm1(up))
            # where p > e^level q, that is also at most P(|x + v| >= up) <= P(|x| >= up - shift)
            back = up + self.b * np.log1p(-np.exp(self._log_d - up / self.b)) - ROUNDINGS_512 * (1 + np.abs(up))
            own = ABOVE_WIDE * np.exp(self._log_peak - self.k * deviance(back)) / (self.k * np.expm1(back))
            right_second = np.where(back > 0, np.fmin(right_second, own), right_second)
        return total, spread + left_second + right_second, spread + left + right, panels, estimate, bound
