"""The least value of a function of one or a few variables: a search, no proof. scipy's takes longer to load."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from shapedp.numerics.arrays import Floats

Cost = Callable[[Floats], float]


def least(cost: Cost, corners: Floats, *, near: float, close: float, most: int) -> Floats:
    """About where `cost` is least: the best corner once corners are within `near` and values within `close`.

    Reference: Nelder and Mead 1965, A simplex method for function minimization.

    Parameters: the function, the first corners (one per row), the two tolerances, and the most calls.

    Example:
        >>> corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        >>> least(lambda x: float(((x - 0.25) ** 2).sum()), corners, near=1e-4, close=1e-8, most=200).round(3)
        array([0.25, 0.25])
    """
    points = [np.array(one, dtype=np.float64) for one in corners]
    values = [cost(one) for one in points]
    calls = len(points)
    while calls < most:
        order = sorted(range(len(points)), key=values.__getitem__)
        points, values = [points[i] for i in order], [values[i] for i in order]
        spread = max(float(np.abs(one - points[0]).max()) for one in points[1:])
        if spread <= near and values[-1] - values[0] <= close:
            break
        middle = np.mean(points[:-1], axis=0)
        away = middle - points[-1]
        tried, value = middle + away, cost(middle + away)
        calls += 1
        if value < values[0]:
            further = cost(middle + 2 * away)
            calls += 1
            if further < value:
                tried, value = middle + 2 * away, further
        elif value >= values[-2]:
            inner = middle + (0.5 if value < values[-1] else -0.5) * away
            at = cost(inner)
            calls += 1
            if at >= min(value, values[-1]):
                points = [points[0], *(points[0] + 0.5 * (one - points[0]) for one in points[1:])]
                values = [values[0], *(cost(one) for one in points[1:])]
                calls += len(points) - 1
                continue
            tried, value = inner, at
        points[-1], values[-1] = tried, value
    return points[int(np.argmin(values))]


def least_between(cost: Callable[[float], float], low: float, high: float, close: float) -> float:
    """About where `cost` is least between two points, to within `close`: golden sections.

    Example:
        >>> round(least_between(lambda x: (x - 0.25) ** 2, 0.0, 1.0, 1e-6), 4)
        0.25
    """
    share = (math.sqrt(5) - 1) / 2
    inner = [high - share * (high - low), low + share * (high - low)]
    values = [cost(inner[0]), cost(inner[1])]
    while high - low > close:
        if values[0] < values[1]:
            high, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = high - share * (high - low)
            values[0] = cost(inner[0])
        else:
            low, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = low + share * (high - low)
            values[1] = cost(inner[1])
    return inner[0] if values[0] < values[1] else inner[1]
