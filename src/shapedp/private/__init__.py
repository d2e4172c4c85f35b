"""Private tables: counts, sums, means and variances of people by group, aggregated exactly in a database.

Needs the extra `tables` (`pip install 'shapedp[tables]'`) once a table is asked; importing it does not.
"""

from shapedp.private.answers import Answers
from shapedp.private.conditions import Column, Condition, col
from shapedp.private.dropped import Dropped
from shapedp.private.mixed import MixedPlan
from shapedp.private.plans import TablePlan
from shapedp.private.questions import Aggregate, Question, count, mean, median, quantile, sum, variance
from shapedp.private.table import PrivateTable, table

__all__ = [
    "Aggregate",
    "Answers",
    "Column",
    "Condition",
    "Dropped",
    "MixedPlan",
    "PrivateTable",
    "Question",
    "TablePlan",
    "col",
    "count",
    "mean",
    "median",
    "quantile",
    "sum",
    "table",
    "variance",
]
