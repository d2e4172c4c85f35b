"""Canonical bytes and the digest of a certificate (the rules of RFC 8785, for the JSON that certificates use).

Keys sorted by their UTF-16 code units, no spaces, shortest digits that give back the same double, whole doubles
below 1e21 as integers. Two files that say the same have the same digest.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any


def canonical(value: Any) -> bytes:
    """The canonical bytes of a JSON value."""
    return _text(value).encode("utf-8")


def digest(value: Any) -> str:
    """`sha256:` and the hexadecimal SHA-256 of the canonical bytes."""
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, list):
        return "[" + ",".join(_text(item) for item in value) + "]"
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{_text(value[key])}" for key in keys) + "}"
    raise ValueError(f"{type(value).__name__} is no JSON value")


def _number(value: int | float) -> str:
    """A number as ECMAScript writes the double nearest to it."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("JSON knows no infinities and no NaN")
    if number == 0:
        return "0"
    mantissa, _, exponent = f"{number!r}e0".partition("e")
    power = int(exponent.partition("e")[0])
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + ("" if fraction == "0" else fraction)).lstrip("0")
    point = len(whole) + power if whole != "0" else power - (len(fraction) - len(fraction.lstrip("0")))
    digits = digits.rstrip("0") or "0"
    sign = "-" if number < 0 else ""
    if 0 < point <= 21:
        return sign + (digits.ljust(point, "0") if len(digits) <= point else f"{digits[:point]}.{digits[point:]}")
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if point > 0 else '-'}{abs(point - 1)}"
