"""The report: what it holds, and how it behaves in a real browser."""

import io
import json
import re
import runpy
import shutil
import sys
from collections import Counter

import pytest

from harness import __main__ as program
from harness import figures, formats, play, record, report_html, run_folder, score, verdicts
from harness.prompts import Style
from harness.record import Key, Result

HOSTILE = '</script><img src=x onerror="window.planted=1"> <!-- <script>'


@pytest.fixture(scope="session")
def written(scripted_runs, tmp_path_factory):
    """Folder and page of a run of real games, with one hostile reply and one spoilt episode."""
    folder = tmp_path_factory.mktemp("report")
    shutil.copy(scripted_runs[1] / run_folder.RUN, folder)
    episodes = list(record.read(scripted_runs[1] / record.EPISODES))
    first = next(e for e in episodes if e.key.env_id.startswith("agentgym/Sokoban"))
    hostile = {"reply": HOSTILE, "reasoning": HOSTILE, "asked": HOSTILE}
    hostile |= {"tool_calls": (("act", HOSTILE),), "sent": 1, "dropped": 2}
    turn = first.turns[1].model_copy(update=hostile)
    changed = {"turns": (first.turns[0], turn, *first.turns[2:]), "system": HOSTILE}
    planted = first.model_copy(update=changed)
    key = first.key.model_copy(update={"seed": 99})
    spoilt = first.model_copy(update={"key": key, "result": Result.PROVIDER_ERROR})
    with record.Writer(folder / record.EPISODES) as writer:
        for each in (*episodes, spoilt, planted):
            writer.append(each)
    return folder, report_html.write(folder)


def embedded(page):
    text = page.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="episodes">(.*?)</script>', text, re.S)
    return json.loads(found[1])


def test_the_page_holds_every_episode_that_stands(written):
    folder, page = written

    found = embedded(page)

    standing = list(record.playable(record.latest(record.read(folder / record.EPISODES))))
    assert len(found) == len(standing) == 9
    assert Counter(e["environment"] for e in found) == Counter(score.name(e.key) for e in standing)
    by_key = {(e.key.env_id, e.key.seed): e for e in standing}
    for each in found:
        episode = by_key[each["environment"], each["seed"]]
        assert [t["observation"] for t in each["turns"]] == [t.observation for t in episode.turns]
        assert [t["reply"] for t in each["turns"]] == [t.reply for t in episode.turns]
        assert each["start"]["best"] == list(episode.start.note.best_actions)
        assert each["start"]["cost"] == episode.start.note.cost_to_go
    assert sum(t["reply"] == HOSTILE for e in found for t in e["turns"]) == 1


def test_the_page_asks_no_network_and_no_reply_gets_out_of_its_data(written):
    text = written[1].read_text(encoding="utf-8")

    assert "default-src 'none'" in text
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//|@import|url\((?!#)""", text)
    assert "<img" not in text
    assert text.count("</script>") == 3
    assert not re.search(r"#0102[0-9a-f]{2}", text)
    for name in ("Sokoban-v0", "RushHour-v0", "Minesweeper-v0"):
        assert f"<h3>{name}</h3>" in text
    assert text.count("<svg") == 3 * 6 + 1
    assert "1 episodes that a provider error or the end of the money spoilt are left out" in text
    assert "<dd>format fence, lenient parsing, history stateless</dd>" in text


def test_the_page_says_what_the_games_took(written):
    found = re.search(r"<dt>time</dt><dd>(.*?)</dd>", written[1].read_text(encoding="utf-8"))

    assert re.fullmatch(r"The games took \d+\.\d\d ms a turn\.", found[1])


def test_the_last_command_is_that_of_the_program_that_played(written, walk, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("Right\n" * 4))
    assert play.main([walk, "--out", str(tmp_path / "r")]) == 0
    by_hand = report_html.write(tmp_path / "r")

    for page, name in ((by_hand, "play"), (written[1], "eval")):
        assert f"<dd>python -m harness.{name} " in page.read_text(encoding="utf-8")


def test_the_same_record_gives_the_same_bytes(written, tmp_path):
    again = report_html.write(written[0], tmp_path / "again.html")

    assert again.read_bytes() == written[1].read_bytes()


def test_the_command_line(written, tmp_path, capsys):
    out = tmp_path / "some.html"

    assert report_html.main([str(written[0]), "--out", str(out), "--max-mb", "0.02"]) == 0

    assert str(out) in capsys.readouterr().out.replace("\n", "")
    few = embedded(out)
    assert 0 < len(few) < 9
    assert f"{len(few)} of 9 episodes are here" in out.read_text(encoding="utf-8")


def test_both_names_of_the_command_write_it(written, tmp_path, monkeypatch):
    first, second = tmp_path / "1.html", tmp_path / "2.html"

    assert program.main(["report", str(written[0]), "--out", str(first)]) == 0
    monkeypatch.setattr(sys, "argv", ["report", str(written[0]), "--out", str(second)])
    monkeypatch.delitem(sys.modules, "harness.report")
    with pytest.raises(SystemExit) as end:
        runpy.run_module("harness.report", run_name="__main__")

    assert end.value.code == 0
    assert first.read_bytes() == second.read_bytes() == written[1].read_bytes()


def test_an_episode_without_a_turn_is_drawn(assignment, finish, fenced):
    played, _ = finish(assignment(), lambda request: fenced("Right"))
    stopped = played.model_copy(update={"turns": (), "result": Result.CONTEXT_OVERFLOW})

    drawn = figures.draw([verdicts.trace(stopped)])

    assert [f.title for f in drawn if f.text == "No turn was played."] == [
        "What the oracle says of the actions",
        "Reply tokens per turn",
    ]


def test_a_large_run_is_embedded_in_part_with_equal_shares():
    sizes = {
        Key(env_id=env_id, seed=seed, rollout=rollout): 10
        for env_id in ("X", "Y")
        for seed in range(4)
        for rollout in range(2)
    }

    assert report_html.choose(sizes, 160) == set(sizes)
    chosen = report_html.choose(sizes, 100)
    assert Counter(key.env_id for key in chosen) == {"X": 5, "Y": 5}
    assert sorted((k.rollout, k.seed) for k in chosen if k.env_id == "X") == [
        (0, 0),
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 0),
    ]


def test_a_run_without_episodes_and_a_folder_without_a_run_are_named(written, tmp_path, capsys):
    shutil.copy(written[0] / run_folder.RUN, tmp_path)
    (tmp_path / record.EPISODES).write_bytes(b"")

    assert report_html.main([str(tmp_path)]) == 1
    assert "no finished episode yet" in " ".join(capsys.readouterr().err.split())
    assert report_html.main([str(tmp_path / "nowhere")]) == 1
    assert "Cannot read" in capsys.readouterr().err
    assert report_html.main([str(written[0]), "--max-mb", "-1"]) == 1
    assert "max_mb is 0 or more, got -1" in capsys.readouterr().err
    assert report_html.main([str(written[0]), "--out", str(tmp_path)]) == 1
    assert "Cannot write" in capsys.readouterr().err


def test_a_missing_package_is_named_with_the_command_that_mends_it(
    written, tmp_path, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, "jinja2", None)

    assert report_html.main([str(written[0]), "--out", str(tmp_path / "x.html")]) == 1

    said = " ".join(capsys.readouterr().err.split())
    assert "pip install 'agentgym-suite[report]'" in said


def test_figures_say_why_they_are_not_there(assignment, finish, fenced):
    played, _ = finish(assignment(), lambda request: fenced("Right"))
    blind = played.model_copy(
        update={
            "start": played.start.model_copy(update={"note": None}),
            "turns": tuple(t.model_copy(update={"note": None}) for t in played.turns),
        }
    )

    drawn = {f.title: f for f in figures.draw([verdicts.trace(blind)])}

    absent = {title for title, figure in drawn.items() if not figure.svg}
    assert absent == {
        "Success against optimal length",
        "Distance to a win along episodes",
        "First blunder and first dead end",
    }
    assert all(figure.text for figure in drawn.values())
    seen = {f.title: f for f in figures.draw([verdicts.trace(played)])}
    assert all(figure.svg.startswith("<svg") for figure in seen.values())


@pytest.fixture(scope="module")
def browser(written):
    """A real headless Chromium; closed with this module, for until then its event loop runs here.

    So the runs behind `written`, which need a loop of their own, are played before.
    """
    api = pytest.importorskip(
        "playwright.sync_api", reason="The package playwright is not installed."
    )
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("No Chromium is installed, so the report is not clicked through.")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=flags)
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser, written):
    """Opens the page; what went wrong in it, and what it asked of a network, fails the test."""
    faults, pages = [], []

    def build(width=1200, scheme="light", anchor="", path=written[1]):
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page.on("pageerror", lambda fault: faults.append(str(fault)))
        page.on("console", lambda said: faults.append(said.text))
        page.on("request", lambda asked: faults.extend([asked.url] * (asked.url[:5] != "file:")))
        page.goto(path.as_uri() + anchor)
        pages.append(page)
        return page

    yield build
    for page in pages:
        page.close()
    assert faults == []


def test_stepping_shows_each_turn_of_the_record(opened, written):
    page = opened()
    episode = embedded(written[1])[0]
    turns = episode["turns"]
    assert turns[0]["observation"] != turns[-1]["observation"]

    for number, turn in enumerate(turns):
        assert page.locator("#board").text_content() == turn["observation"]
        assert page.locator("#reply").text_content() == turn["reply"]
        where = page.locator("#where").inner_text()
        assert where.startswith(f"Turn {number + 1} of {len(turns)}")
        assert ("blunder" in where) == (turn["verdict"] == "blunder")
        assert turn["action"] in page.locator("#action").inner_text()
        before = episode["start"] if number == 0 else turns[number - 1]["note"]
        chips = page.locator("#oracle .move").all_inner_texts()
        assert chips == before["best"][:24]
        if not before["dead"]:
            assert f"Here: {before['cost']:g} turn" in page.locator("#oracle").inner_text()
        page.keyboard.press("ArrowRight")

    assert f"End after {len(turns)} turns" in page.locator("#where").inner_text()
    assert episode["final"] not in ("", turns[-1]["observation"])
    assert page.locator("#board").text_content() == episode["final"]
    assert page.locator("#calls-box").is_hidden()
    assert page.locator("#prompt-box").is_hidden()
    assert page.locator("#on").is_disabled()
    page.keyboard.press("ArrowLeft")
    assert page.locator("#board").text_content() == turns[-1]["observation"]


def test_the_prompt_is_shown_as_it_was_sent(opened, written, tmp_path, assignment, finish):
    style = Style(format="tool", history="full", list_actions=True)
    played, requests = finish(
        assignment(style=style), lambda request: formats.write("tool", "Right")
    )
    shutil.copy(written[0] / run_folder.RUN, tmp_path)
    with record.Writer(tmp_path / record.EPISODES) as writer:
        writer.append(played)
    page = opened(path=report_html.write(tmp_path))

    for number, request in enumerate(requests):
        assert page.locator("#system").text_content() == request.messages[0]["content"]
        assert page.locator("#prompt").text_content() == request.messages[-1]["content"]
        assert page.locator("#calls").text_content() == 'act({"action": "Right"})'
        assert page.locator("#reply").is_hidden()
        between = page.locator("#between").text_content()
        assert between.startswith(f"Then {number} earlier turn" if number else "")
        page.keyboard.press("ArrowRight")


def test_the_buttons_the_strip_and_the_blunder_key_move_about(opened, written):
    page = opened()
    turns = embedded(written[1])[0]["turns"]

    page.click("#on")
    assert page.locator("#where").inner_text().startswith("Turn 2 ")
    page.click("#back")
    assert page.locator("#where").inner_text().startswith("Turn 1 ")
    page.click("#last")
    assert page.locator("#where").inner_text().startswith("End after")
    page.click("#first")
    mistakes = [n for n, t in enumerate(turns) if n and t["verdict"] in ("blunder", "fatal")]
    page.keyboard.press("b")
    assert page.locator("#where").inner_text().startswith(f"Turn {mistakes[0] + 1} ")
    box = page.locator("#strip").bounding_box()
    page.locator("#strip").click(
        position={"x": box["width"] * 3.5 / (len(turns) + 1), "y": box["height"] / 2}
    )
    assert page.locator("#where").inner_text().startswith("Turn 4 ")
    assert page.locator("#strip rect").count() == len(turns) + 2


def test_episodes_are_chosen_and_kept_in_the_address(opened, written):
    page = opened()
    episodes = embedded(written[1])
    wanted = next(n for n, e in enumerate(episodes) if e["environment"] == "agentgym/RushHour-v0")

    page.select_option("#environment", "agentgym/RushHour-v0")
    assert page.locator("#board").text_content() == episodes[wanted]["turns"][0]["observation"]
    page.keyboard.press("Escape")
    page.locator("#where").click()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("n")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("location.hash") == f"#replay-{wanted + 1}-1"
    page.select_option("#filter", "won")
    assert page.locator("#none").is_visible()
    again = opened(anchor=f"#replay-{wanted + 1}-1")
    assert (
        again.locator("#board").text_content() == (episodes[wanted + 1]["turns"][1]["observation"])
    )


def test_a_reply_that_holds_html_is_shown_as_text(opened, written):
    replies = [[turn["reply"] for turn in each["turns"]] for each in embedded(written[1])]
    page = opened(
        anchor=f"#replay-{next(n for n, each in enumerate(replies) if HOSTILE in each)}-1"
    )

    assert page.locator("#reply").text_content() == HOSTILE
    page.click("#thought-box summary")
    assert page.locator("#thought").inner_text() == HOSTILE
    assert page.locator("img").count() == 0
    assert page.locator("#calls").inner_text() == f"act({HOSTILE})"
    page.click("#prompt-box summary")
    assert page.locator("#system").inner_text() == HOSTILE
    assert page.locator("#prompt").text_content().endswith(HOSTILE)
    assert page.locator("#between").inner_text() == (
        "Then 1 earlier turn, each with its reply. 2 older turns no longer fitted."
    )
    assert page.evaluate("window.planted") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_scrolling_sideways(opened, scheme):
    page = opened(width=390, scheme=scheme)

    assert page.evaluate("document.documentElement.scrollWidth") == 390
    for name in ("#on", "#back"):
        box = page.locator(name).bounding_box()
        assert min(box["width"], box["height"]) >= 44
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


def test_dark_mode_is_dark_and_readable(opened):
    light, dark = opened(), opened(scheme="dark")
    contrast = """() => {
      const light = (name) => {
        const [r, g, b] = getComputedStyle(document.body)[name].match(/[0-9]+/g).map((part) => {
          const c = part / 255;
          return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      return [light("color"), light("backgroundColor")];
    }"""

    ink, paper = light.evaluate(contrast)
    assert paper > ink
    assert (paper + 0.05) / (ink + 0.05) > 7
    ink, paper = dark.evaluate(contrast)
    assert ink > paper
    assert (ink + 0.05) / (paper + 0.05) > 7
    # The figures' letters take the page's colour.
    label = "getComputedStyle(document.querySelector('figure svg text')).fill"
    assert dark.evaluate(label) == dark.evaluate("getComputedStyle(document.body).color")
