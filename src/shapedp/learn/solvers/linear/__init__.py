"""Solvers of private least squares: functions of the second moments and the claim."""

from shapedp.learn.solvers.linear.adassp import ADASSP, ADASSP_JOINT
from shapedp.learn.solvers.linear.mixing import MIXING
from shapedp.learn.solvers.linear.mixing_paper import MIXING_PAPER
from shapedp.learn.solvers.linear.problem import Draws, Problem, Solution, Solver
from shapedp.learn.solvers.linear.sheffet import SHEFFET, SHEFFET_RDP
from shapedp.learn.solvers.linear.suffstats import SUFFSTATS

SOLVERS: dict[str, Solver] = {
    "mixing": MIXING,
    "mixing-paper": MIXING_PAPER,
    "adassp": ADASSP,
    "adassp-joint": ADASSP_JOINT,
    "suffstats": SUFFSTATS,
    "sheffet": SHEFFET,
    "sheffet-rdp": SHEFFET_RDP,
}

__all__ = ["SOLVERS", "Draws", "Problem", "Solution", "Solver"]
