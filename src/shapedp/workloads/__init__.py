"""Workloads: linear queries as shapes, planned before any record is read."""

from shapedp.workloads.answered import AnsweredWorkload
from shapedp.workloads.answers import AnswerMechanism
from shapedp.workloads.mechanism import WorkloadMechanism
from shapedp.workloads.release import Estimate, WorkloadRelease
from shapedp.workloads.schema import Attribute, Measure, Schema
from shapedp.workloads.workload import Workload, workload_from_json

__all__ = [
    "AnswerMechanism",
    "AnsweredWorkload",
    "Attribute",
    "Estimate",
    "Measure",
    "Schema",
    "Workload",
    "WorkloadMechanism",
    "WorkloadRelease",
    "workload_from_json",
]
