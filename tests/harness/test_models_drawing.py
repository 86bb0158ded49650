"""How the engine in Transformers draws tokens."""

import collections

import numpy as np
import pytest

from harness.models.local_transformers import Draw

NEEDS = "needs the packages of the extra transformers; tox -e vllm installs them"
torch = pytest.importorskip("torch", reason=NEEDS)


def shares(temperature, top_p, vocabulary=None, rows=6000):
    """How often each token is drawn from a distribution of 50, 30, 15 and 5 percent."""
    likely = torch.tensor([0.15, 0.5, 0.05, 0.3]).log()
    scores = torch.full((rows, vocabulary or 4), -torch.inf)
    scores[:, :4] = likely
    draw = Draw(temperature, top_p, [np.random.default_rng(row) for row in range(rows)])
    draw(None, scores)
    tokens, logprobs = draw.rows()
    for (token,), (logprob,) in zip(tokens, logprobs, strict=True):
        assert logprob == pytest.approx(likely[token].item(), abs=1e-6)
    counts = collections.Counter(token for (token,) in tokens)
    return [counts[token] / rows for token in range(4)]


@pytest.mark.parametrize(
    ("temperature", "top_p", "expected"),
    [
        (1.0, 1.0, [0.15, 0.5, 0.05, 0.3]),
        (1.0, 0.8, [0, 0.625, 0, 0.375]),
        (1.0, 0.81, [0.15 / 0.95, 0.5 / 0.95, 0, 0.3 / 0.95]),
        (1.0, 0.1, [0, 1, 0, 0]),
        # Probabilities to the power 1 / 0.5, over their sum 0.365.
        (0.5, 1.0, [0.0225 / 0.365, 0.25 / 0.365, 0.0025 / 0.365, 0.09 / 0.365]),
        (0.0, 1.0, [0, 1, 0, 0]),
    ],
)
@pytest.mark.parametrize("vocabulary", [4, 1000])
def test_tokens_are_drawn_with_their_probabilities(temperature, top_p, expected, vocabulary):
    found = shares(temperature, top_p, vocabulary)
    # Five standard deviations of 6,000 draws.
    assert found == pytest.approx(expected, abs=5 * 0.5 / 6000**0.5)
    assert [share == 0 for share in found] == [share == 0 for share in expected]


def test_more_than_the_head_is_sorted_where_it_is_needed():
    rows, size = 400, 600
    draw = Draw(1.0, 1.0, [np.random.default_rng(row) for row in range(rows)])
    chosen = draw(None, torch.zeros(rows, size)).argmax(-1)
    assert len(set(chosen.tolist())) > 256
