"""`automem doctor`: it finds what is here, says how to get what is not, and gives no secret away."""

from __future__ import annotations

import stat
from pathlib import Path
from types import ModuleType

import pytest

from automem import doctor
from automem.models import smollm2, vllm_server
from automem.sandbox import modes, syscalls


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOMEM_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without starting the simulators, which takes seconds and is tested once."""
    monkeypatch.setattr(doctor, "games_installed", lambda: doctor.Check("games", "ok", "stands in"))


def found() -> dict[str, doctor.Check]:
    return {check.name: check for check in doctor.checks()}


def test_everything_that_matters_is_looked_at() -> None:
    checks = found()
    assert list(checks) == [
        *("python", "games", "Boxoban levels", "vLLM", "torch", "training", "smollm2", "GPU", "API keys"),
        *("tcmalloc", "bubblewrap", "Landlock", "seccomp", "cores", "memory", "disk"),
    ]
    assert checks["games"].status == "ok"
    assert "nle 1.3.0" in checks["games"].what
    assert not [check for check in checks.values() if check.status == "missing" and not check.how]


@pytest.mark.usefixtures("_quick")
def test_keys_are_named_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEBODY_API_KEY", "very-secret-value")
    checks = found()
    assert "SOMEBODY_API_KEY" in checks["API keys"].what
    assert "very-secret-value" not in repr(checks)


@pytest.mark.usefixtures("_quick")
def test_what_is_missing_comes_with_a_way_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(vllm_server, "vllm_variant", lambda: None)
    monkeypatch.setattr(smollm2, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("AUTOMEM_BOXOBAN_LEVELS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    checks = found()
    told = {name: (checks[name].status, checks[name].how) for name in ("vLLM", "smollm2", "bubblewrap")}
    assert told == {
        "vLLM": ("missing", "make setup"),
        "smollm2": ("missing", "make setup"),
        "bubblewrap": ("warn", "apt-get install bubblewrap"),
    }
    assert checks["GPU"].status == "warn"
    assert "automem games fetch" in checks["Boxoban levels"].how


def test_a_torch_that_vllm_cannot_use_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_server, "vllm_variant", lambda: "cpu")
    monkeypatch.setattr(doctor, "_version", {"torch": "2.13.0"}.get)
    assert doctor.torch().status == "missing"
    assert "AUTOMEM_TORCH_INDEX" in doctor.torch().how
    monkeypatch.setattr(doctor, "_version", {"torch": "2.13.0+cpu", "torchaudio": "2.11"}.get)
    assert doctor.torch().how == "pip uninstall torchaudio"
    monkeypatch.setattr(doctor, "_version", {"torch": "2.13.0+cpu"}.get)
    assert doctor.torch().status == "ok"


def test_a_sandbox_that_is_installed_and_cannot_run_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.bubblewrap().status == "warn"
    assert "No permissions" in doctor.bubblewrap().what


def test_without_a_filter_of_system_calls_nothing_contains_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> ModuleType:
        raise OSError("libseccomp cannot be loaded (it is not there)")

    monkeypatch.setattr(syscalls, "library", absent)
    for known in (syscalls.compiled, modes._tried):
        known.cache_clear()
    try:
        found = {check.name: check for check in (doctor.bubblewrap(), doctor.landlock(), doctor.seccomp())}
    finally:
        for known in (syscalls.compiled, modes._tried):
            known.cache_clear()
    assert (found["seccomp"].status, found["seccomp"].how) == ("missing", "apt-get install libseccomp2")
    assert [found[name].status for name in ("bubblewrap", "Landlock")] == ["warn", "warn"]
    assert all("libseccomp" in check.what for check in found.values())


@pytest.mark.usefixtures("_quick")
def test_a_look_that_fails_spoils_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOMEM_BOXOBAN_LEVELS", "/nowhere")
    checks = found()
    assert checks["boxoban levels"].status == "warn"
    assert "/nowhere" in checks["boxoban levels"].what
    assert checks["disk"].what


def test_training_needs_all_of_its_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_version", {"peft": "0.21.2", "accelerate": "1.15.0"}.get)
    assert doctor.training().status == "warn" and doctor.training().what.startswith("trl not installed")
    monkeypatch.setattr(doctor, "_version", {"peft": "0.21.2", "trl": "1.16.0", "accelerate": "1.15.0"}.get)
    assert doctor.training().status == "ok"
