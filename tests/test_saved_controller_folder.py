"""Where a controller is saved: only a controller is ever replaced, and a disk that refuses is an error in words."""

import os
import resource
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from controllers.network import initial_weights
from controllers.policy import ControllerPolicy
from controllers.saved import check_target, load_controller, read_manifest, save_controller
from harness_mdp.errors import InputError
from tests.saved_controllers import SCHEMA, manifest, saved

WEB_APP = '{"name": "My app", "short_name": "app", "start_url": "/"}'


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def fill(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@contextmanager
def full_disk(limit: int = 256):
    """No file may grow beyond `limit` bytes, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def without_rights():
    """As a user to whom permissions apply."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_saving_again_replaces_and_leaves_nothing_else_behind(tmp_path):
    folder = saved(tmp_path / "c")
    saved(folder, seed=5)
    assert read_manifest(folder).seed == 5
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "weights.safetensors"]


def test_an_empty_folder_and_missing_parents_are_no_obstacle(tmp_path):
    (tmp_path / "empty").mkdir()
    assert load_controller(saved(tmp_path / "empty")).name == "aw"
    assert load_controller(saved(tmp_path / "a" / "b" / "c")).name == "aw"


def test_a_controller_of_another_version_or_cut_short_is_replaced(tmp_path):
    folder = tmp_path / "c"
    fill(folder, {"manifest.json": '{"format": "harness-mdp controller", "format_version": 99}'})
    assert load_controller(saved(folder)).name == "aw"


def test_a_link_to_a_controller_stays_a_link(tmp_path):
    folder = saved(tmp_path / "real")
    (tmp_path / "latest").symlink_to(folder)
    saved(tmp_path / "latest", seed=5)
    assert (tmp_path / "latest").is_symlink()
    assert read_manifest(folder).seed == 5


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"chapter.txt": "years of work"}, "chapter.txt"),
        ({"manifest.json": WEB_APP}, "a manifest.json that is no controller's"),
        ({"manifest.json": WEB_APP, "index.html": "<p>", "src/app.js": ""}, "index.html, src"),
        ({"manifest.json": "{ no JSON"}, "a manifest.json that is no controller's"),
        ({"manifest.json": "[" * 100_000}, "a manifest.json that is no controller's"),
        ({"manifest.json": '["harness-mdp controller"]'}, "a manifest.json that is no controller's"),
        ({"manifest.json/inner.txt": "a folder of that name"}, "manifest.json"),
        ({"weights.safetensors": "somebody's only copy"}, "weights.safetensors"),
        ({f"{n}.txt": "" for n in range(9)}, "0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 4 more"),
    ],
)
def test_a_folder_that_is_no_controller_is_named_and_not_touched(tmp_path, files, named):
    folder = tmp_path / "thesis"
    fill(folder, files)
    before = contents(tmp_path)
    with pytest.raises(InputError, match="no saved controller and is not replaced") as refusal:
        saved(folder)
    assert f"it holds {named};" in str(refusal.value)
    assert str(folder) in str(refusal.value)
    with pytest.raises(InputError, match="no saved controller"):
        check_target(folder)
    assert contents(tmp_path) == before


def test_notes_beside_a_controller_are_not_lost(tmp_path):
    folder = saved(tmp_path / "c")
    fill(folder, {"notes.md": "which run this was", "plots/loss.svg": "<svg/>"})
    before = contents(tmp_path)
    with pytest.raises(InputError, match=r"it holds notes\.md, plots;"):
        saved(folder, seed=5)
    assert contents(tmp_path) == before


def test_a_file_is_not_replaced(tmp_path):
    file = tmp_path / "model"
    file.write_text("content")
    with pytest.raises(InputError, match=r"model: is a file; expected a folder"):
        saved(file)
    with pytest.raises(InputError, match=r"model/c: .*A part of this path is a file"):
        saved(file / "c")
    assert file.read_text() == "content"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_full_disk_is_said_and_keeps_the_controller_that_was_there(tmp_path):
    folder = saved(tmp_path / "c")
    before = contents(tmp_path)
    with full_disk(), pytest.raises(InputError, match=r"c: a controller cannot be saved here .* Make room"):
        save_controller(folder, ControllerPolicy(initial_weights(len(SCHEMA), 8, seed=2)), manifest())
    assert contents(tmp_path) == before


def test_missing_permissions_are_said():
    with TemporaryDirectory() as place:
        folder = Path(place)
        saved(folder / "c")
        (folder / "c" / "weights.safetensors").chmod(0o000)
        folder.chmod(0o555)
        with without_rights():
            with pytest.raises(InputError, match=r"new: .* cannot be saved here \(Permission denied\).*may write"):
                saved(folder / "new")
            with pytest.raises(InputError, match=r"c: a controller cannot be saved here \(Permission denied\)"):
                saved(folder / "c", seed=5)
            with pytest.raises(InputError, match=r"weights\.safetensors: cannot be read \(Permission denied\)"):
                load_controller(folder / "c")
        folder.chmod(0o000)
        with without_rights():
            with pytest.raises(InputError, match="cannot be saved here"):
                saved(folder / "c")
            with pytest.raises(InputError, match="cannot be looked into"):
                load_controller(folder / "c")
        folder.chmod(0o755)
        assert sorted(path.name for path in folder.iterdir()) == ["c"]
        assert read_manifest(folder / "c").seed == 4


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is there on Linux only")
def test_a_place_that_holds_no_files_is_said():
    with pytest.raises(InputError, match=r"/proc/c: a controller cannot be saved here"):
        saved(Path("/proc/c"))


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
def test_names_that_no_disk_holds_are_said(tmp_path, name):
    with pytest.raises(InputError):
        saved(tmp_path / name)
    with pytest.raises(InputError):
        load_controller(tmp_path / name)
    assert not list(tmp_path.iterdir())
