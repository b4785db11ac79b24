"""The page says what a reader asks, says "simulated" wherever it is, and is safe and alone."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from buffers import ReplayBuffer
from tests.commands import command
from tests.episodes import episodes
from tests.report_buffers import SCRIPTS, WICKED, collected, controllers, evaluated, made_up, page

QUESTIONS = (
    "Did it help?",
    "Where?",
    "At what cost?",
    "Can I believe it?",
    "What did it change in the process?",
)


class _Reader(HTMLParser):
    """Tags with their attributes, and the text of the tags that are asked about."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"caption": [], "script": [], "style": [], "h3": []}
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in self.texts:
            self._open.append(tag)
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open[-1]][-1] += data


def unpacked(html: str, identity: str):
    text = re.search(rf'id="{identity}">([^<]*)</script>', html)
    assert text is not None
    return json.loads(gzip.decompress(base64.b64decode(text[1])))


@pytest.fixture(scope="module")
def buffer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    collected(folder / "buffer")
    evaluated(folder / "buffer", [*SCRIPTS, *controllers(folder)])
    return folder / "buffer"


@pytest.fixture(scope="module")
def whole(buffer: Path):
    return page(buffer)


def test_the_five_questions_come_in_order_and_before_everything_else(whole) -> None:
    places = [whole.html.index(question) for question in QUESTIONS]
    assert places == sorted(places)
    assert places[-1] < whole.html.index("Before you believe it") < whole.html.index("Where these figures come from")


def test_every_table_and_figure_of_figures_says_simulated(whole) -> None:
    captions = [text for text in _Reader(whole.html).texts["caption"] if "Times an" not in text]
    assert len(captions) > 5
    unsaid = [text for text in captions if "simulated" not in text]
    assert all("event" in text or "Plain means" in text for text in unsaid)
    assert "Simulated executor: no language model was run" in whole.html
    assert re.search(r"<title>Simulated: ", whole.html)
    assert whole.simulated


def test_provenance_names_what_was_passed_and_resolved_versions_seeds_and_commit(whole, buffer: Path) -> None:
    version = ReplayBuffer(buffer).version
    for text in ("c0ffee", f"Table version {version}", "Seed 1.", "Seed 0.", "d3rlpy", "&#34;rollouts&#34;: 1"):
        assert text in whole.html
    assert "training seed 1" in whole.html
    assert "As passed" in whole.html


def test_nothing_is_fetched_and_only_its_own_script_and_style_run(whole) -> None:
    reader = _Reader(whole.html)
    assert not [tag for tag, attributes in reader.tags if {"src", "style", "onload", "onclick"} & set(attributes)]
    links = [attributes["href"] for _, attributes in reader.tags if "href" in attributes]
    assert all(link in ("data:,", None) or link.startswith("#") for link in links)
    policy = next(a["content"] for tag, a in reader.tags if tag == "meta" and "http-equiv" in a)
    digest = lambda text: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()  # noqa: E731
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest(reader.texts['script'][-1])}'" in policy
    assert f"style-src 'sha256-{digest(reader.texts['style'][0])}'" in policy


def test_the_index_holds_every_episode_as_it_is_stored(whole, buffer: Path) -> None:
    columns = unpacked(whole.html, "index")["columns"]
    rows = ReplayBuffer(buffer).episodes_df()
    assert sorted(columns["id"]) == sorted(rows["episode_id"])
    stored = {row["episode_id"]: row for row in rows.iter_rows(named=True)}
    for place, identity in enumerate(columns["id"]):
        row = stored[identity]
        assert columns["return"][place] / 1000 == pytest.approx(row["return"], abs=5e-4)
        assert columns["words"]["setting"][columns["setting"][place]] == row["setting"]
        assert columns["tokens"][place] == row["tokens"]


def test_an_opened_episode_has_its_steps_artifacts_and_probabilities(whole, buffer: Path) -> None:
    columns = unpacked(whole.html, "index")["columns"]
    stored = {each.episode_id: each for each in ReplayBuffer(buffer).episodes()}
    for place in (0, len(columns["id"]) // 2, len(columns["id"]) - 1):
        told = unpacked(whole.html, f"block-{columns['block'][place]}")[columns["place"][place]]
        episode = stored[columns["id"][place]]
        assert told["artifacts"] == dict(episode.artifacts)
        assert [step["action"] for step in told["steps"]] == [int(step.action) for step in episode.steps]
        for step, wanted in zip(told["steps"], episode.steps, strict=True):
            assert step["probs"] == pytest.approx(wanted.propensities.tolist(), abs=1e-4)
            assert [bool(step["legal"] >> bit & 1) for bit in range(7)] == wanted.mask.tolist()


def test_a_small_budget_keeps_every_arm_and_says_how_many(buffer: Path, whole) -> None:
    size = 6_000
    small = page(buffer, details_bytes=size)
    assert 0 < small.with_steps < small.episodes
    assert f"{small.with_steps} of them can be opened step by step" in small.html
    assert len(small.html) <= len(whole.html) - sum(map(len, re.findall(r'id="block-\d+">([^<]*)<', whole.html))) + size
    columns = unpacked(small.html, "index")["columns"]
    arms = {columns["policy"][place] for place, number in enumerate(columns["evaluation"]) if number >= 0}
    assert arms == {columns["policy"][place] for place, block in enumerate(columns["block"]) if block >= 0}


def test_an_episode_that_two_buffers_hold_can_be_opened_from_both(tmp_path: Path) -> None:
    made_up(tmp_path / "all" / "one")
    shutil.copytree(tmp_path / "all" / "one", tmp_path / "all" / "two")
    told = page(tmp_path / "all")
    assert told.episodes == told.with_steps == 32  # 4 tasks x 2 rollouts x 2 arms, twice
    assert "Each of the 32 episodes can be opened step by step" in told.html


def test_without_room_for_steps_episodes_are_still_listed(buffer: Path) -> None:
    bare = page(buffer, details_bytes=0)
    assert bare.with_steps == 0
    assert len(unpacked(bare.html, "index")["columns"]["id"]) == bare.episodes


def test_what_a_model_wrote_is_nowhere_markup(tmp_path: Path) -> None:
    made_up(tmp_path / "buffer", odd_text=WICKED, executor=f"model {WICKED}")
    html = page(tmp_path / "buffer").html
    assert WICKED not in html
    assert "<script>document.title" not in html
    reader = _Reader(html)
    assert not [tag for tag, _ in reader.tags if tag == "img"]
    block = unpacked(html, "block-0")
    assert any(WICKED in text for text in block[0]["artifacts"].values())


def test_a_collection_without_an_evaluation_is_reported_and_promises_nothing(tmp_path: Path) -> None:
    ReplayBuffer(tmp_path / "buffer").append(episodes(40, tasks=10))
    told = page(tmp_path / "buffer")
    assert told.headline == "Not evaluated yet"
    assert "Nothing was evaluated" in told.html
    assert "slack" in told.html


def test_arms_with_nothing_learned_are_not_called_a_success_of_learning(tmp_path: Path) -> None:
    made_up(tmp_path / "buffer")
    told = page(tmp_path / "buffer")
    assert told.headline in ("check_revise helps", "Nothing here beats base")
    assert "No learned controller was evaluated." in told.html


def test_the_same_buffer_gives_the_same_page_in_another_process(buffer: Path, tmp_path: Path, whole) -> None:
    out = tmp_path / "page.html"
    stdout, _ = command("harness_mdp.report", f"buffer={buffer}", f"out={out}", env={"PYTHONHASHSEED": "7"})
    assert "simulated" in stdout
    assert "can be opened step by step" in stdout
    made, here = out.read_text(), whole.html
    last = 'id="provenance"'  # names the command line
    assert made.split(last)[0] == here.split(last)[0]
    assert made.split('id="index"')[1] == here.split('id="index"')[1]
