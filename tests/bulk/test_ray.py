"""Bulk loading on a real Ray cluster of two nodes on this machine, one of which goes away."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from homing.bulk import RayWorkers, Source, load
from homing.engine import Engine
from homing.stores.sqlite import SqliteStore
from homing.testing.fake import FakeEmbedder
from tests.bulk.embedding import Counting, embedded

pytest.importorskip("ray", reason="needs homing[ray]")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def cluster() -> Iterator[Any]:
    ray = importlib.import_module("ray")
    cluster_utils = importlib.import_module("ray.cluster_utils")

    made = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    # Workers import what travels by name.
    environment = {"env_vars": {"PYTHONPATH": ":".join([str(ROOT), *sys.path])}}
    ray.init(address=made.address, log_to_driver=False, runtime_env=environment)
    yield made
    ray.shutdown()
    made.shutdown()


def test_a_node_that_goes_away_costs_the_batches_under_way(cluster: Any, tmp_path: Path) -> None:
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    (tmp_path / "log").mkdir()
    file = tmp_path / "rows.jsonl"
    lines = ({"id": f"r{n:03d}", "text": f"第{n}条 灯塔 lamp {n}"} for n in range(300))
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    engine = Engine(SqliteStore(tmp_path / "store.db"), FakeEmbedder(), background=False)
    workers = RayWorkers(partial(Counting, tmp_path / "log", processes=2), "auto")
    assert workers.window == 4
    gone: list[int] = []

    def remove_node(done: int, total: int) -> None:
        if done >= 100 and not gone:
            cluster.remove_node(node, allow_graceful=False)
            gone.append(done)

    done = load(engine, Source(str(file)), "rows", workers, model=FakeEmbedder().id, batch=10, progress=remove_node)
    workers.close()
    assert gone
    assert (done.rows, done.embedded, done.waiting) == (300, 300, 0)
    assert engine.store.check() == []
    assert engine.store.pending("rows") == 0
    texts = embedded(tmp_path / "log")
    assert len(set(texts)) == 300
    assert len(texts) - 300 <= 10 * 4
    engine.close()
    engine.store.close()
