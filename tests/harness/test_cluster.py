"""Episodes over a real Ray cluster of two nodes on this machine, some of its actors killed."""

import asyncio
import os
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from agentgym.errors import InvalidOption
from harness import eval as evaluation
from harness import models, prices, scheduler, suites
from harness.models import FatalProviderError, Sampling
from harness.prices import Purse
from harness.record import EPISODES, Result, read
from harness.request import Gauge, Reply
from harness.scheduler import Watch
from harness.terms import Terms
from tests.harness.processes import ROOT, start
from tests.harness.records import timeless

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'agentgym-suite[ray]'.")
from harness import cluster as clusters  # noqa: E402
from harness.cluster import connect  # noqa: E402
from harness.joining import ClusterError  # noqa: E402

GAMES = ("agentgym/Sokoban-v0", "agentgym/RushHour-v0")


@contextmanager
def _cluster(**head):
    """A cluster with that head, whose actors find the modules of the tests."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")  # Else Ray calls home.
        nodes = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **head})
        try:
            yield nodes
        finally:
            nodes.shutdown()


@pytest.fixture(scope="module")
def ray_cluster():
    """A cluster of two nodes with one CPU each."""
    with _cluster(num_cpus=1) as nodes:
        nodes.add_node(num_cpus=1)
        yield nodes


@pytest.fixture
def two_nodes(ray_cluster):
    """Its address."""
    return ray_cluster.address


def _assignments(instances, rollouts=1):
    changes = suites.Changes(instances=instances, rollouts=rollouts, max_turns=12)
    return suites.assignments(suites.changed(suites.custom(GAMES), changes))


def _terms(model="random", **more):
    return Terms(partial(models.load, model, sampling=Sampling(seed=3)), **more)


def _over_ray(address, assignments, terms, **arguments):
    """Play over the cluster; what was kept."""
    kept = []
    _play(connect(address, terms), assignments, kept.append, **arguments)
    return kept


def _play(cluster, assignments, keep, **arguments):
    """Play, give the cluster back, and fail where it would go on for ever."""

    async def run():
        try:
            async with asyncio.timeout(150):
                await cluster.play_all(assignments, keep=keep, **arguments)
        finally:
            await cluster.close()

    asyncio.run(run())


@pytest.fixture(scope="module")
def alone():
    """The episodes of `_assignments(8)` by `random`, played in this process."""
    kept = []
    asyncio.run(scheduler.play_all(_assignments(8), _terms().load(), keep=kept.append))
    return sorted(map(timeless, kept))


def test_the_command_over_ray_makes_the_record_that_it_makes_alone(two_nodes, tmp_path, capsys):
    command = ["--model", "oracle", "--instances", "4", "--max-turns", "9", "--env", *GAMES]
    assert evaluation.main([*command, "--out", str(tmp_path / "alone")]) == 0
    # What was begun without Ray goes on with it.
    shutil.copytree(tmp_path / "alone", tmp_path / "ray")
    path = tmp_path / "ray" / EPISODES
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    assert evaluation.main([*command, "--out", str(tmp_path / "ray"), "--ray", two_nodes]) == 0
    assert "8/8 episodes" in capsys.readouterr().out

    over_ray, alone = (list(read(tmp_path / name / EPISODES)) for name in ("ray", "alone"))
    assert sorted(map(timeless, over_ray)) == sorted(map(timeless, alone))


def _wait_until(condition):
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends, "it did not come"
        time.sleep(0.05)


class Killer:
    """Keeps episodes; kills the actor of the first one, and waits for the one in its place."""

    def __init__(self, cluster):
        self.kept, self.held, self.killed, self.replaced = [], 0, None, False
        self._cluster = cluster

    def keep(self, episode):
        slot = next(slot for slot in self._cluster._slots if episode.key in slot.held)
        if self.killed is None:
            _wait_until(lambda: len(self._cluster.workers) == 2)
            self._killed_slot, self.killed = slot, slot.at.process
            self.held = len(slot.held) - 1
            os.kill(self.killed, signal.SIGKILL)
        elif slot is not self._killed_slot and not self.replaced:
            # Not in the lane of the dead one, which has to find out.
            known = {self.killed, slot.at.process}
            _wait_until(lambda: {worker.process for worker in self._cluster.workers} - known)
            self.replaced = True
        self.kept.append(episode)


def test_a_killed_actor_is_replaced_and_no_episode_is_lost_or_doubled(two_nodes, alone):
    cluster = connect(two_nodes, _terms())
    killer, told, replies = Killer(cluster), [], []
    watch = Watch(lambda key, reply: replies.append((key, reply)), told.append)

    _play(cluster, _assignments(8), killer.keep, watch=watch)

    assert killer.held > 1
    assert killer.replaced
    assert sorted(map(timeless, killer.kept)) == alone
    assert told == killer.kept
    # What the display counts: without the texts, which come with the episodes.
    assert all(reply.text == "" for _, reply in replies)
    known = {assignment.key for assignment in _assignments(8)}
    assert {key for key, _ in replies} == known


def test_what_an_actor_has_told_is_kept_also_where_the_run_is_stopped_meanwhile(
    two_nodes, monkeypatch
):
    cluster, playing, told, kept = connect(two_nodes, _terms()), [], [], []
    take_in = clusters._take_in

    async def take_in_and_stop(news, slot, stage):
        told.extend(episode.key for episode in news.episodes)
        if len(news.episodes) > 1:
            playing[0].cancel()
        await take_in(news, slot, stage)

    def keep(episode):
        time.sleep(0.1)  # The actor ends more than one meanwhile.
        kept.append(episode.key)

    async def play():
        playing.append(asyncio.create_task(cluster.play_all(_assignments(8), keep=keep)))
        try:
            await asyncio.wait(playing, timeout=150)
        finally:
            await cluster.close()

    monkeypatch.setattr(clusters, "_take_in", take_in_and_stop)
    asyncio.run(play())

    assert playing[0].cancelled()
    assert sorted(map(str, kept)) == sorted(map(str, told))


@pytest.mark.parametrize(
    "deaths", [1, pytest.param(3, marks=pytest.mark.slow)], ids=["not replaced", "replaced"]
)
def test_actors_that_always_die_end_the_run_with_a_clear_error(two_nodes, monkeypatch, deaths):
    assert clusters.DEATHS == 3
    monkeypatch.setattr(clusters, "DEATHS", deaths)
    terms = Terms(partial(_Murderer, "murderer"))
    said = rf"died {deaths} time\(s\) without ending an episode"
    with pytest.raises(ClusterError, match=said) as fault:
        _over_ray(two_nodes, _assignments(3), terms)
    assert "the same command goes on" in str(fault.value)


class _Murderer:
    """Ends the process that it plays in."""

    def __init__(self, name, **settings):
        self.name, self.concurrency, self.settings, self.gauge = name, 1, settings, Gauge()

    async def reply(self, request):
        os.kill(os.getpid(), signal.SIGKILL)

    async def close(self):
        pass


class _Refused(_Murderer):
    async def reply(self, request):
        raise FatalProviderError(f"The key is wrong, got {os.environ['OPENAI_API_KEY'][:3]!r}.")


class _Broken(_Murderer):
    async def reply(self, request):
        raise ZeroDivisionError("a defect")


class _Costly(_Murderer):
    """Stands still in the corner, for two tokens a turn, once another plays, which costs none."""

    def __init__(self, name, folder):
        super().__init__(name)
        self._other = folder / "other"
        try:
            (folder / "first").mkdir()
            self._is_other = False
        except FileExistsError:
            self._is_other = True

    async def reply(self, request):
        if self._is_other:
            self._other.touch()
            await asyncio.sleep(0.1)
            return Reply("For nothing:\n```\nUp\n```", prompt_tokens=0, completion_tokens=0)
        while not self._other.exists():
            await asyncio.sleep(0.02)
        return Reply("```\nUp\n```", prompt_tokens=1, completion_tokens=1)


def test_a_refusal_ends_the_run_with_its_own_message_and_the_key_reaches_the_actors(
    ray_cluster, two_nodes, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-indeed")
    with pytest.raises(FatalProviderError, match="The key is wrong, got 'sk-'"):
        _over_ray(two_nodes, _assignments(2), Terms(partial(_Refused, "refused")))
    # Ray keeps logs of its own; no key may stand in one.
    session = Path(ray_cluster.head_node.get_session_dir_path())
    logs = [path for path in session.rglob("*.*") if path.is_file()]
    assert logs
    assert not [path for path in logs if b"very-secret" in path.read_bytes()]


def test_a_defect_shows_its_place(two_nodes):
    with pytest.raises(ZeroDivisionError, match="in reply"):
        _over_ray(two_nodes, _assignments(2), Terms(partial(_Broken, "broken")))


def test_a_model_that_cannot_be_loaded_is_said_with_the_host(two_nodes, capsys):
    command = ["--model", "smollm2-135m", "--engine", "server", "--ray", two_nodes]
    assert evaluation.main(command) == 1
    assert "engine server needs an address" in capsys.readouterr().err


def test_the_money_is_that_of_all_actors_and_sessions_together(two_nodes, tmp_path):
    price = prices.Price(1e6, 1e6)
    purse = Purse(price, 40.0)
    purse.spent = 39.0
    terms = Terms(partial(_Costly, "costly", folder=tmp_path), price=price, max_cost=40.0)
    kept = _over_ray(two_nodes, _assignments(20), terms, purse=purse)

    # An actor that did not know of the earlier session would have spent 40 by itself.
    assert purse.spent == 41
    assert sum(turn.cost for episode in kept for turn in episode.turns) == 2
    # The other one has spent nothing, and ends for what the first has.
    free = [each for each in kept if any("For nothing" in turn.reply for turn in each.turns)]
    assert Result.COST_LIMIT in {episode.result for episode in free}
    assert len(kept) < 40


@pytest.mark.slow
@pytest.mark.parametrize("left", [1, 0])
def test_a_node_that_is_lost_takes_no_episode_with_it_and_with_the_last_the_run_ends(alone, left):
    kept = []
    with _cluster(num_cpus=0) as nodes:
        lost = [nodes.add_node(num_cpus=1) for _ in range(2)][left:]
        cluster = connect(nodes.address, _terms())

        def keep(episode):
            if not kept:
                _wait_until(lambda: len(cluster.workers) == 2)
                for node in lost:
                    nodes.remove_node(node, allow_graceful=False)
            kept.append(episode)

        if left:
            _play(cluster, _assignments(8), keep)
            assert sorted(map(timeless, kept)) == alone
        else:
            with pytest.raises(ClusterError, match="No node with a CPU is left"):
                _play(cluster, _assignments(8), keep)
            assert 0 < len(kept) < 16


class _Seen(_Murderer):
    """Says which GPUs it sees."""

    async def reply(self, request):
        return Reply(f"{os.environ['CUDA_VISIBLE_DEVICES']}\n```\nUp\n```")


@pytest.mark.slow
def test_open_weights_have_an_actor_on_each_gpu(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with _cluster(num_cpus=4, num_gpus=2) as nodes:
        cluster = connect(nodes.address, Terms(partial(_Seen, "org/weights")))
        kept = []

        def keep(episode):
            _wait_until(lambda: len(cluster.workers) == 2)
            kept.append(episode)

        _play(cluster, _assignments(8), keep)
    assert {turn.reply[0] for episode in kept for turn in episode.turns} == {"0", "1"}


@pytest.mark.slow
def test_ctrl_c_ends_it_in_order_and_leaves_no_process(tmp_path):
    command = ["--model", "random", "--suite", "core", "--ray", "local", "--out", str(tmp_path)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = start("-m", "harness.eval", *command, start_new_session=True, **pipes)
    path = tmp_path / EPISODES
    try:
        _wait_until(lambda: path.exists() and path.stat().st_size)
        # As a terminal does, to every process of the group.
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 130, said
        assert "Stopped; the same command goes on from here." in said
        assert "Traceback" not in said
        assert path.read_bytes().endswith(b"\n")
        _wait_until(lambda: not _group(process.pid))
    finally:
        if _group(process.pid):
            os.killpg(process.pid, signal.SIGKILL)


def _group(number):
    """Whether a process group has members."""
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("address", "error", "said"),
    [
        ("127.0.0.1:1", ClusterError, "Cannot join the Ray cluster '127.0.0.1:1'"),
        ("ray://127.0.0.1:1", InvalidOption, "--ray takes auto, local or HOST:PORT"),
        ("nonsense", InvalidOption, "got 'nonsense'"),
    ],
)
def test_a_cluster_that_is_not_there(address, error, said):
    with pytest.raises(error, match=said):
        connect(address, _terms())
    assert not ray.is_initialized()
