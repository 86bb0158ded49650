"""The table of models: names, arguments, and what a missing package says."""

import json
import os
import subprocess
import sys

import pytest

from agentgym.errors import InvalidOption, MissingExtra, UnknownName
from harness import models
from harness.models import Sampling
from harness.models.presets import PRESETS


def test_every_model_is_described_in_one_line() -> None:
    described = models.describe()
    programs, providers = ["oracle", "random", "greedy", "human"], ["openai/", "anthropic/"]
    assert list(described) == [
        *programs,
        *PRESETS,
        "FOLDER, ORG/NAME",
        *providers,
        "google/",
    ]
    assert all(text and "\n" not in text for text in described.values())


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("orakle", "Did you mean 'oracle'?"),
        ("smollm", "Did you mean 'smollm2-135m'?"),
        ("openai", "Did you mean 'openai/NAME'?"),
        ("openai/", "Did you mean 'openai/NAME'?"),
        ("opnai/gpt-5", "Did you mean 'openai/gpt-5'?"),
        ("OpenAI/gpt-5", "Did you mean 'openai/gpt-5'?"),
        ("antropic/claude", "Did you mean 'anthropic/claude'?"),
        ("gogle/gemini", "Did you mean 'google/gemini'?"),
        ("qwen3-4", "Did you mean 'qwen3-4b'?"),
        ("a/b/c", "Known: "),
        ("org/", "Known: "),
        ("", "Known: "),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UnknownName, match="Unknown model") as caught:
        models.load(name)
    assert near in str(caught.value)


def test_an_address_without_a_server_model_is_refused() -> None:
    with pytest.raises(InvalidOption) as caught:
        models.load("random", base_url="http://127.0.0.1:1/v1")
    assert str(caught.value) == (
        "base_url goes with openai/NAME, anthropic/NAME, google/NAME, open weights with server, "
        "got 'random'."
    )


def test_concurrency_below_one_is_refused() -> None:
    with pytest.raises(InvalidOption, match="at least 1, got 0"):
        models.load("random", concurrency=0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"temperature": -0.1}, "temperature is from 0 to 5, got -0.1"),
        ({"temperature": float("nan")}, "temperature is from 0 to 5, got nan"),
        ({"top_p": 0.0}, "top_p is above 0 and at most 1, got 0.0"),
        ({"top_p": 1.5}, "top_p is above 0 and at most 1, got 1.5"),
        ({"seed": -1}, "seed is 0 or more, got -1"),
        ({"max_tokens": 0}, "max_tokens is at least 1, got 0"),
    ],
)
def test_sampling_out_of_range_is_refused(given: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        Sampling(**given)  # pyright: ignore[reportArgumentType]


def test_a_models_own_defaults_stand_only_where_nothing_is_asked() -> None:
    assert Sampling().settings(0.2, 0.9) == {
        "temperature": 0.2,
        "top_p": 0.9,
        "seed": 0,
        "max_tokens": None,
    }
    asked = Sampling(temperature=0.0, top_p=0.5, seed=3, max_tokens=7)
    assert asked.settings(0.2, 0.9) == {
        "temperature": 0.0,
        "top_p": 0.5,
        "seed": 3,
        "max_tokens": 7,
    }


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("human", "rich", "harness"),
        ("smollm2-135m", "xllamacpp", "local"),
        ("openai/x", "openai", "harness"),
        ("anthropic/x", "anthropic", "anthropic"),
        ("google/x", "google.genai", "google"),
    ],
)
def test_a_missing_package_gives_the_command(
    name: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [m for m in sys.modules if f"{m}.".startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, module)
    for module in ("human", "local_llamacpp", "openai_api", "anthropic_api", "google_api"):
        monkeypatch.delitem(sys.modules, f"harness.models.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)  # importing it now fails
    with pytest.raises(MissingExtra) as caught:
        models.load(name)
    shown = package.replace(".", "-")
    assert str(caught.value) == (
        f"The model {name} needs the package {shown}, which is not installed; "
        f"run: pip install 'agentgym-suite[{extra}]'"
    )


def _in_new_process(code: str, hash_seed: str = "0") -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_program_that_plays_imports_no_models_package() -> None:
    code = (
        "import sys; from harness import models;"
        "[models.load(name) for name in ('oracle', 'random', 'greedy')];"
        "heavy = ('openai', 'anthropic', 'xllamacpp', 'rich', 'httpx2', 'torch', 'vllm');"
        "print([package for package in heavy if package in sys.modules])"
    )
    assert _in_new_process(code) == "[]\n"


def test_the_digest_of_a_request_is_the_same_everywhere() -> None:
    code = (
        "from harness.models import request_digest as d; import json;"
        "print(json.dumps([d(0, ('agentgym/x', 0, 0)), d(1, ('\\u00e9', 2, 3))]))"
    )
    here = [
        models.request_digest(0, ("agentgym/x", 0, 0)),
        models.request_digest(1, ("\u00e9", 2, 3)),
    ]
    assert json.loads(_in_new_process(code, "1")) == here
    assert json.loads(_in_new_process(code, "2")) == here


def test_the_digest_tells_all_parts_of_a_key_apart() -> None:
    keys = [
        (seed, (f"i{i}", r, t)) for seed in (0, 1) for i in "12" for r in (0, 11) for t in (1, 2)
    ]
    digests = {models.request_digest(seed, key) for seed, key in keys}
    assert len(digests) == len(keys)
    assert all(0 <= digest < 2**128 for digest in digests)
