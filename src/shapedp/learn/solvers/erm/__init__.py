"""Solvers of regularised empirical risk: private linear classification."""

from shapedp.learn.solvers.base import Solver
from shapedp.learn.solvers.cd import CLASSIFIER
from shapedp.learn.solvers.erm.bolt_on import BOLT_ON
from shapedp.learn.solvers.erm.mixing import MIXING
from shapedp.learn.solvers.erm.objective import KIFER, OBJECTIVE
from shapedp.learn.solvers.erm.output import OUTPUT
from shapedp.learn.solvers.erm.problem import Problem, Risk

SOLVERS: dict[str, Solver[Problem, Risk]] = {
    "output": OUTPUT,
    "bolt-on": BOLT_ON,
    "objective": OBJECTIVE,
    "kifer": KIFER,
    "cd": CLASSIFIER,
    "mixing": MIXING,
}
