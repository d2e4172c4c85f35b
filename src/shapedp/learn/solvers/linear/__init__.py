"""Solvers of private least squares: functions of the second moments and the claim."""

from shapedp._papers import published
from shapedp.learn.solvers.linear.adassp import ADASSP, ADASSP_JOINT
from shapedp.learn.solvers.linear.boosted import BOOSTED, DESCENT
from shapedp.learn.solvers.linear.hessian import HESSIAN_MIXING
from shapedp.learn.solvers.linear.mixing import MIXING
from shapedp.learn.solvers.linear.problem import Draws, Problem, Solution, Solver
from shapedp.learn.solvers.linear.refined import REFINED
from shapedp.learn.solvers.linear.suffstats import SUFFSTATS


def _published(name: str, passes: int = 1) -> Solver:
    """A solver of a paper, which is loaded when it is used. The papers' solvers know one neighbour relation."""
    return Solver(
        lambda problem: published("solver", name).mechanisms(problem),
        lambda moments, mechanisms, draws: published("solver", name).solve(moments, mechanisms, draws),
        adjacencies=("zero-out",),
        passes=passes,
    )


AUTO, AUTO_ONCE = "refined", "suffstats"  # frozen by experiments/regression/table.py on generated sets
SOLVERS: dict[str, Solver] = {
    "refined": REFINED,
    "suffstats": SUFFSTATS,
    "mixing": MIXING,
    "hessian-mixing": HESSIAN_MIXING,
    "hessian-mixing-paper": _published("hessian-mixing-paper", passes=4),
    "adassp-joint": ADASSP_JOINT,
    "adassp": ADASSP,
    "boosted": BOOSTED,
    "descent": DESCENT,
    "sheffet": _published("sheffet"),
    "sheffet-rdp": _published("sheffet-rdp"),
    "mixing-paper": _published("mixing-paper"),
}

__all__ = ["AUTO", "AUTO_ONCE", "SOLVERS", "Draws", "Problem", "Solution", "Solver"]
