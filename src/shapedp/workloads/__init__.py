"""Workloads: linear queries as shapes, planned before any record is read."""

from shapedp.workloads.answered import AnsweredWorkload
from shapedp.workloads.answers import AnswerMechanism
from shapedp.workloads.mechanism import WorkloadMechanism
from shapedp.workloads.release import Estimate, WorkloadRelease
from shapedp.workloads.schema import Attribute, Measure, Schema
from shapedp.workloads.time_bands import Banded, Correlation, Toeplitz
from shapedp.workloads.time_buffers import Buffered
from shapedp.workloads.time_maps import StepSums
from shapedp.workloads.workload import Workload, workload_from_json

__all__ = [
    "AnswerMechanism",
    "AnsweredWorkload",
    "Attribute",
    "Banded",
    "Buffered",
    "Correlation",
    "Estimate",
    "Measure",
    "Schema",
    "StepSums",
    "Toeplitz",
    "Workload",
    "WorkloadMechanism",
    "WorkloadRelease",
    "workload_from_json",
]
