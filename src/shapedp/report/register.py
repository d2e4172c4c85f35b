"""The claims register as a page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from shapedp.numerics.checks import entries
from shapedp.papers.register import CLAIMS, Claim, Finding
from shapedp.report.figures import counted, number
from shapedp.report.markup import Markup, el, text
from shapedp.report.page import Page, badge, callout, charts, commands, facts, figure, more, section, table, top
from shapedp.report.svg import Axis, Chart, logarithmic

_Shown = tuple[Claim, Finding | None]  # with what was computed for this page, if it was


def claims_page(claims: Iterable[Claim] | None = None, findings: Sequence[Finding] | None = None) -> Page:
    """The page of the register of published statements.

    Parameters
    ----------
    claims
        Some statements of the register; None: all of them.
    findings
        What computing the statements anew found (`shapedp.claims.check`), instead of `claims`.

    Returns
    -------
    Page
        Its verdict is "refuted" where a finding disagrees with the register, otherwise None.

    Examples
    --------
    >>> claims_page().title
    'Claims register'
    """
    claims = None if claims is None else entries("claims", claims)
    findings = None if findings is None else entries("findings", findings)
    if not all(isinstance(one, Claim) for one in claims or ()):
        raise TypeError("claims must be claims of the register")
    if not all(isinstance(one, Finding) for one in findings or ()):
        raise TypeError("findings must be what checks of claims returned")
    if findings is None:
        shown: list[_Shown] = [(claim, None) for claim in (CLAIMS.values() if claims is None else claims)]
    else:
        shown = [(finding.claim, finding) for finding in findings]
    if not shown:
        raise ValueError("there is no claim to show")
    papers: dict[str, list[_Shown]] = {}
    for claim, finding in shown:
        papers.setdefault(claim.id.partition("/")[0], []).append((claim, finding))
    shown = [one for paper in papers.values() for one in paper]
    verdicts = Counter(claim.standing for claim, _ in shown)
    disagree = [claim.id for claim, finding in shown if finding is not None and not finding.verified]
    state = text("register-kept" if findings is None else "register-computed")
    lead = text("register", statements=counted(len(shown), "statement"), state=state)
    cards = [(verdict, str(number_), None) for verdict, number_ in verdicts.most_common()]
    head = top("the claims register", "Published statements and their computed verdicts", lead, cards)
    how = section("how", "How to read it", text("register-how"))
    rows = [(el("a", claim.id, href=f"#{_anchor(claim.id)}"), badge(claim.standing)) for claim, _ in shown]
    caption = f"{counted(len(shown), 'statement')} from {counted(len(papers), 'source')}"
    contents = section("contents", "All statements", table(caption, ("statement", "verdict"), rows, words=2))
    lines = ["shapedp claims --verify", "shapedp report --claims --verify -o claims.html"]
    recheck = section("recheck", "How to recheck", text("register-recheck", commands=commands(lines)))
    articles = [_paper(name, those) for name, those in papers.items()]
    body = [how, contents, *_slack([claim for claim, _ in shown]), *articles, recheck]
    if disagree:
        wrong = callout("bad", f"Computed otherwise: {', '.join(disagree)}.")
        body.insert(0, section("disagree", "The register disagrees", wrong))
    return Page("Claims register", head, tuple(body), "refuted" if disagree else None)


def _slack(claims: Sequence[Claim]) -> list[Markup]:
    """Claimed over exact, where a statement compares them, smallest first."""
    found = [(claim.slack, claim) for claim in claims if claim.slack and claim.about == "privacy"]
    if not found:
        return []
    found.sort(key=lambda pair: pair[0])
    least, most = min(found[0][0], 0.5), max(found[-1][0], 2.0)
    n = len(found)
    x = Axis("statements, from the most overstated", 0.5, n + 0.5, (), grid=False)
    y = logarithmic("claimed / exact (log scale)", least, most)
    refuted = sum(claim.standing == "refuted" for _, claim in found)
    described = f"The claimed value over the exact one for {n} statements; {refuted} of them are refuted."
    chart = Chart(x, y, "How far the claims are from what holds", described)
    chart.across((x.low, 1.0), (x.high, 1.0), "limit", "claimed = exact")
    for k, (slack, claim) in enumerate(found, 1):
        kind = "two" if claim.standing == "refuted" else "one"
        chart.mark(k, slack, kind, f"{claim.id}: {number(slack, 4)} ({claim.standing})")
    legend = [("one", "mark", "certified"), ("two", "mark", "refuted"), ("limit", "line", "claimed = exact")]
    drawn = figure("slack-drawn", chart, text("register-slack"), legend)
    return [section("slack", "Claimed against exact", charts(drawn))]


def _paper(paper: str, shown: Sequence[_Shown]) -> Markup:
    title = paper.replace("-", " ")
    return section(f"source-{_anchor(paper)}", title[:1].upper() + title[1:], [_article(*one) for one in shown])


def _article(claim: Claim, finding: Finding | None) -> Markup:
    values = claim.found if finding is None else finding.values
    given = (f"{name.replace('_', ' ')} {number(float(value), 6)}" for name, value in claim.parameters.items())
    pairs = facts(
        ("Where", claim.source),
        ("Parameters", ", ".join(given)) if claim.parameters else None,
        None if claim.slack is None else ("Claimed over exact", number(claim.slack, 4)),
    )
    printed = {name: value for name, (value, _) in claim.printed.items()}
    rows = [
        [name.replace("_", " "), number(float(value), 6), number(float(printed[name]), 6) if name in printed else ""]
        for name, value in values.items()
    ]
    numbers = more("Numbers", table("Computed", ("quantity", "computed", "printed"), rows)) if rows else None
    wrong = None
    if finding is not None and not finding.verified:
        wrong = callout("bad", "The register disagrees: " + "; ".join(finding.disagreements))
    head = el("h3", claim.id), badge(claim.standing), el("p", claim.statement)
    why = el("p", el("strong", "Why: "), claim.witness)
    return el("article", head, why, wrong, pairs, numbers, commands([claim.command]), id=_anchor(claim.id))


def _anchor(name: str) -> str:
    return "claim-" + re.sub(r"[^a-zA-Z0-9]+", "-", name).strip("-")
