"""A merged copy says what its adapter says, is made once, and never half."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from automem.errors import UserError
from specialist.adapter import BaseModelId
from specialist.serve import merged
from tests.specialist.serve.adapters import a_real_adapter, an_adapter


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOMEM_CACHE", str(tmp_path / "cache"))


def runs(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(merged, "MERGER", (sys.executable, "-c", program))


WRITES = "import pathlib, sys; p = pathlib.Path(sys.argv[3]); p.mkdir(); (p / 'whole').touch()"


def test_a_copy_that_was_cut_short_is_made_again_and_one_that_is_whole_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = an_adapter(tmp_path / "one")
    target = merged.merged_folder(one)
    draft = target.with_name(f"{target.name}.draft")
    draft.mkdir(parents=True)
    (draft / "half").touch()
    runs(monkeypatch, "import sys; sys.exit('no space left on device')")
    with pytest.raises(UserError, match=r"(?s)one: working it into .*no space left"):
        merged.ensure_merged(tmp_path, one)
    assert not target.exists()
    runs(monkeypatch, WRITES)
    assert merged.ensure_merged(tmp_path, one) == target
    assert [file.name for file in target.iterdir()] == ["whole"]
    runs(monkeypatch, "raise SystemExit('merged twice')")
    assert merged.ensure_merged(tmp_path, one) == target


def test_other_weights_or_another_base_model_are_another_copy(tmp_path: Path) -> None:
    folders = {
        merged.merged_folder(an_adapter(tmp_path / name, weights=weights, fingerprint=base))
        for name, weights, base in (("a", b"1", "f" * 64), ("b", b"2", "f" * 64), ("c", b"1", "e" * 64))
    }
    assert len(folders) == 3


@pytest.mark.slow
def test_it_says_what_the_adapter_says(tmp_path: Path) -> None:
    import torch
    from peft import PeftModel
    from transformers import LlamaConfig, LlamaForCausalLM

    base = tmp_path / "base"
    torch.manual_seed(0)
    shape = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
    LlamaForCausalLM(shape).save_pretrained(base)
    (base / "tokenizer.json").write_text('{"kept": "as it is"}')
    one = a_real_adapter(tmp_path / "one", base, BaseModelId(name="tiny", fingerprint="f" * 64), seed=1)
    copy = merged.ensure_merged(base, one)
    assert (copy / "tokenizer.json").read_text() == '{"kept": "as it is"}'
    ids = torch.arange(3, 40)[None]
    with torch.no_grad():
        plain = LlamaForCausalLM.from_pretrained(base)
        before = plain(ids).logits
        expected = PeftModel.from_pretrained(plain, one.folder)(ids).logits
        found = LlamaForCausalLM.from_pretrained(copy, dtype="auto")
        worst = (found(ids).logits - expected).abs().max().item()
    assert found.dtype == torch.float32, "the base model's own number format"
    changed = (before - expected).abs().max().item()
    assert changed > 1e-3
    assert worst < changed / 100
