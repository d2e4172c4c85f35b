"""Solvers of private least squares: functions of the second moments and the claim."""

from shapedp._papers import published
from shapedp.learn.solvers.linear.adassp import ADASSP, ADASSP_JOINT
from shapedp.learn.solvers.linear.mixing import MIXING
from shapedp.learn.solvers.linear.problem import Draws, Problem, Solution, Solver
from shapedp.learn.solvers.linear.suffstats import SUFFSTATS


def _published(name: str) -> Solver:
    """A solver of a paper, which is loaded when it is used. The papers' solvers know one neighbour relation."""
    return Solver(
        lambda problem: published("solver", name).mechanisms(problem),
        lambda moments, mechanisms, draws: published("solver", name).solve(moments, mechanisms, draws),
        adjacencies=("zero-out",),
    )


AUTO = "suffstats"  # frozen by experiments/gaussian_mixing/auto_rule.py: nowhere is another 4.4 percent ahead
SOLVERS: dict[str, Solver] = {
    "mixing": MIXING,
    "mixing-paper": _published("mixing-paper"),
    "adassp": ADASSP,
    "adassp-joint": ADASSP_JOINT,
    "suffstats": SUFFSTATS,
    "sheffet": _published("sheffet"),
    "sheffet-rdp": _published("sheffet-rdp"),
}

__all__ = ["AUTO", "SOLVERS", "Draws", "Problem", "Solution", "Solver"]
