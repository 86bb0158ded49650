"""What actors of a Ray cluster need, and how work is handed out; no Ray is needed for these."""

import sys

import pytest

from agentgym.errors import InvalidOption
from harness import eval as evaluation
from harness.demand import Demand, demand
from harness.handout import Work
from harness.models import Hardware

NODES = ({"CPU": 4.0}, {"CPU": 2.0, "GPU": 8.0}, {"GPU": 1.0}, {"CPU": 16.0, "GPU": 3.0})


@pytest.mark.parametrize(
    ("need", "actors"),
    [
        (Demand(), 4 + 2 + 0 + 16),
        (Demand(per_node=True), 3),
        (Demand(gpus=1), 0 + 2 + 0 + 3),
        (Demand(gpus=2), 0 + 2 + 0 + 1),
        (Demand(gpus=4), 0 + 2 + 0 + 0),
    ],
)
def test_how_many_actors_fit_on_nodes(need, actors):
    assert need.actors(NODES) == actors


def test_without_a_gpu_in_the_cluster_each_node_has_one_actor():
    assert Demand(gpus=2).fitted(NODES) == Demand(gpus=2)
    assert Demand(gpus=2).fitted(NODES[:1]) == Demand(per_node=True)
    assert Demand().fitted(NODES[:1]) == Demand()


@pytest.mark.parametrize(
    ("model", "wishes", "need"),
    [
        ("random", {}, Demand(requests=2)),
        ("openai/gpt-5", {}, Demand(per_node=True)),
        ("anthropic/claude", {}, Demand(per_node=True)),
        ("smollm2-135m", {}, Demand(per_node=True)),
        ("smollm2-135m", {"engine": "vllm"}, Demand(gpus=1)),
        ("qwen3-4b", {"base_url": "http://host/v1"}, Demand(per_node=True)),
        ("qwen3-4b", {"engine": "server"}, Demand(per_node=True)),
        ("qwen3-4b", {"base_url": None, "hardware": None}, Demand(gpus=1)),
        ("qwen3-4b", {"serve": True, "hardware": Hardware(2, 3)}, Demand(gpus=6)),
        ("Qwen/Qwen3-4B", {"hardware": Hardware(tensor_parallel=4)}, Demand(gpus=4)),
    ],
)
def test_what_a_model_needs(model, wishes, need, monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert demand(model, wishes) == need


def test_an_address_in_the_environment_is_a_server(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://host/v1")
    assert demand("qwen3-4b", {}) == Demand(per_node=True)
    assert demand("qwen3-4b", {"engine": "vllm"}) == Demand(gpus=1)


def test_a_person_does_not_play_in_another_process():
    with pytest.raises(InvalidOption, match="no human"):
        demand("human", {})


def test_work_is_handed_out_in_order_and_what_comes_back_goes_first(assignment):
    first, second, third = (assignment(seed=seed) for seed in range(3))
    work = Work([first, second, third])
    assert work.take(2) == [first, second]
    work.give_back([first, second])
    assert work.take(0) == work.take(-1) == []
    assert work.take(9) == [first, second, third]
    for left in (2, 1, 0):
        assert not work.finished.is_set()
        work.kept()
        assert work.missing == left
    assert work.finished.is_set()
    assert Work([]).finished.is_set()


def test_ray_is_named_where_it_is_missing(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "harness.cluster", raising=False)
    monkeypatch.delitem(sys.modules, "harness.joining", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    assert evaluation.main(["--model", "random", "--ray", "auto"]) == 1
    assert "pip install 'agentgym-suite[ray]'" in capsys.readouterr().err
