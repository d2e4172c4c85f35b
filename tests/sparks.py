"""Spark on this machine, one session for all tests of a process."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from typing import Any

import pytest

# py4j leaves sockets to the collector
quiet = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@functools.cache
def session() -> Any:
    """A session of two threads, where a task that fails is run again; skips where Spark or Java is not installed."""
    made = pytest.importorskip("pyspark.sql", reason="pyspark is not installed").SparkSession
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the executors' Python has the library
    given = {"ui.enabled": "false", "driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1"}
    given |= {"sql.shuffle.partitions": "1", "driver.memory": "1g", "sql.adaptive.enabled": "false"}
    builder = made.builder.master("local[2, 4]").appName("shapedp")
    for name, value in (given | {"ui.showConsoleProgress": "false"}).items():
        builder = builder.config(f"spark.{name}", value)
    return builder.getOrCreate()
