"""Questions, domains and bounds as a person types them: 'mean(hours), count by education, sex where age >= 18'."""

from __future__ import annotations

import re
from typing import Any

from shapedp.boundary.documents import parse
from shapedp.private.questions import VERBS, Aggregate, Question
from shapedp.private.sources import Rows
from shapedp.private.table import PRIVATE, PrivateTable

_QUERY = re.compile(
    r"\A\s*(?P<asked>.*?)(?:\s+(?:(?<!\bas\s)group\s+)?by\s+(?P<by>.*?))?(?:\s+where\s+(?P<where>.*))?\s*\Z",
    re.S | re.I,
)
_ONE = re.compile(
    r"\A\s*(?P<verb>[a-z_]+[0-9]*)\s*(?:\(\s*(?P<column>[^()]*?)\s*\))?(?:\s+as\s+(?P<name>\w+))?\s*\Z", re.I
)
_QUOTED = re.compile(r"""(?<=[(,\s])(?:"[^"]*"|'[^']*')""")  # a name in quotes, or a text in a condition
_HELD = re.compile("\ue000([0-9]+)\ue001")
_OTHERS = (  # words of others, and ours
    ("avg|average", "mean(hours)"),
    ("total", "sum(hours)"),
    ("n|number|freq(uency)?", "count"),
    ("(var|std|stddev|stdev|sd)(_pop|_samp)?|dev", "variance(hours), of which the root is the standard deviation"),
    ("p[0-9]+|percentile(_disc|_cont)?|min|max|minimum|maximum", "quantile(hours, 0.9)"),
    ("mode", "top_k(education, 1)"),
)
_EXAMPLE = "such as 'mean(hours), quantile(hours, 0.9), count by education, sex where age >= 18'"


def question_of(table: PrivateTable, text: str) -> Question:
    """The question that a text asks of a table.

    Example:
        >>> import pandas as pd
        >>> import shapedp as sdp
        >>> t = sdp.table(pd.DataFrame({"sex": ["F"]}), person=None, domains={"sex": ["F", "M"]})
        >>> question_of(t, "count by sex where sex != 'M'")
        count() by sex where (sex != 'M')
    """
    text = text.replace("\ue000", "")
    held: list[str] = _QUOTED.findall(text)
    places = iter(range(len(held)))
    found = _QUERY.match(_QUOTED.sub(lambda _: f"\ue000{next(places)}\ue001", text))
    if found is None or not found["asked"]:
        raise ValueError(f"a query names what is computed, {_EXAMPLE}")
    asked: dict[str, Aggregate] = {}
    for part in _split(found["asked"]):
        name, one = _aggregate(part, held)
        if name in asked:
            raise ValueError(f"a query computes {name!r} twice: name the second, as in 'mean(hours) as hours'")
        asked[name] = one
    if found["where"] is not None:
        table = table.where(_HELD.sub(lambda one: held[int(one[1])], found["where"]))
    if found["by"] is not None:
        names = [_named(name, held) for name in found["by"].split(",")]
        if not all(names):
            raise ValueError(f"a query lists the columns to group by, {_EXAMPLE}")
        if any(" by " in name and "(" in name for name in names) and not set(names) <= set(table.source.kinds):
            raise ValueError(
                f"'by' comes once, after all that is computed, {_EXAMPLE}; ask other groups in a query of "
                "their own (--query may be given several times)"
            )
        table = table.group_by(*names)
    return table.agg(**asked)


def _split(text: str) -> list[str]:
    """At the commas outside parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _named(text: str, held: list[str]) -> str:
    """The name of a column, in quotes or not."""
    return _HELD.sub(lambda one: held[int(one[1])], text.strip()).strip("\"'")


def _aggregate(text: str, held: list[str]) -> tuple[str, Aggregate]:
    found = _ONE.match(text)
    verb = found["verb"].lower() if found is not None else ""
    if found is None or verb not in VERBS:
        other = next((f"; instead of {verb!r} write {ours}" for sign, ours in _OTHERS if re.fullmatch(sign, verb)), "")
        other = other or ("; it has no SELECT and FROM" if text.lower().split()[:1] == ["select"] else "")
        raise ValueError(f"a query computes {', '.join(VERBS)} of a column, {_EXAMPLE}{other}")
    column, number = found["column"] or "", ""
    if verb in ("quantile", "top_k"):
        column, _, number = (part.strip() for part in column.rpartition(","))
    column = _named(column, held)
    if verb == "count":
        if column not in ("", "*"):
            raise ValueError("count takes no column: it counts rows. Leave out missing ones: where hours is not None")
        return found["name"] or "count", Aggregate("count")
    more = _numbered(verb, number)
    if not column:
        raise ValueError(f"{verb} needs a column, as in {verb}(hours)")
    one = Aggregate(verb, column, **more)
    return found["name"] or one.name, one


def _numbered(verb: str, text: str) -> dict[str, Any]:
    """The level of a quantile, or how many values are named."""
    if verb not in ("quantile", "top_k"):
        return {}
    numbers, name = _numbers([text]), {"quantile": "level", "top_k": "k"}[verb]
    if numbers is None:
        raise ValueError(f"{verb} needs a column and a number, as in quantile(hours, 0.9) or top_k(education, 3)")
    return {name: numbers[0]}


def named(text: str, what: str) -> tuple[str, str]:
    """The column and the rest of COLUMN=REST."""
    name, mark, rest = text.partition("=")
    if not name.strip() or not mark or not rest.strip():
        raise ValueError(f"{what} is written COLUMN=..., got {text!r}")
    return name.strip(), rest.strip()


def bounds_of(text: str) -> tuple[float, float] | str:
    """LOW:HIGH, or private."""
    if text == PRIVATE:
        return PRIVATE
    ends = _numbers(text.split(":"))
    if ends is None or len(ends) != 2:
        raise ValueError(f"bounds are written LOW:HIGH, such as hours=0:100, got {text!r}")
    return ends[0], ends[1]


def domain_of(rows: Rows, types: dict[str, str], name: str, text: str) -> Any:
    """A,B,C (then * for all other values), edges 0:18:65:120, size:4 for 0 to 3, a JSON list of labels, or private."""
    if text == PRIVATE:
        return PRIVATE
    if text.startswith("size:"):
        size = _numbers([text[5:]])
        if size is None or size[0] % 1:
            raise ValueError(f"a size is a whole number, as in {name}=size:4")
        return int(size[0])
    edges = _numbers(text.split(":")) if ":" in text else None
    if edges is not None:
        return {"edges": edges}
    if text.startswith("["):
        try:
            labels = parse(text)
        except ValueError:
            raise ValueError(f'the domain of {name!r} is no JSON list, such as ["a", "b"]') from None
        return labels
    labels = [label.strip() for label in text.split(",")]
    other = labels[-1] == "*"
    labels = labels[:-1] if other else labels
    kind = types.get(name) or rows.kinds.get(name) or "text"
    numbers = _numbers(labels) if kind == "number" else None
    if kind == "boolean":
        return {"labels": [label.lower() == "true" for label in labels], "other": other}
    return {"labels": labels if numbers is None else numbers, "other": other}


def _numbers(texts: list[str]) -> list[float] | None:
    try:
        found = [float(text) for text in texts]
    except ValueError:
        return None
    return [int(one) if one.is_integer() and abs(one) < 2**53 else one for one in found]
