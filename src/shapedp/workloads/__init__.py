"""Workloads: linear queries as shapes, planned before any record is read."""

from shapedp.workloads.mechanism import WorkloadMechanism
from shapedp.workloads.release import Estimate, WorkloadRelease
from shapedp.workloads.schema import Attribute, Measure, Schema
from shapedp.workloads.workload import Workload, workload_from_json

__all__ = [
    "Attribute",
    "Estimate",
    "Measure",
    "Schema",
    "Workload",
    "WorkloadMechanism",
    "WorkloadRelease",
    "workload_from_json",
]
