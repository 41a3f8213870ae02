"""The base model that a specialist belongs to: where its files are, and what it is known by.

A name is ``smollm2``, the folder of a model as Hugging Face lays it out, or a model's name there.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from pathlib import Path
from typing import Any

from automem.errors import UserError
from automem.models import smollm2
from automem.models.protocol import ModelUnavailable

CONFIG = "config.json"
WEIGHTS = "*.safetensors"
NOT_NEEDED = ("*.bin", "*.pth", "*.gguf", "*.onnx", "*.h5", "*.msgpack", "original/*")
"""Files on Hugging Face that say the same again in other formats."""

BLOCK = 64 * 1024
BLOCKS = 64
"""A weight file is known by its size and this many blocks of it: a large model is not read whole each time."""

MAX_HEAD = 100_000_000
"""Bytes at most of the head of a file of weights, as its format has it."""

_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_TELLS_NOTHING = ("_name_or_path", "transformers_version", "use_cache")


def folder(name: str, *, download: bool = True) -> Path:
    """Where the files of a base model are; converts or fetches them the first time.

    Args:
        name: see above.
        download: whether a model may be fetched from Hugging Face; otherwise it must have been before.

    Raises `UserError` when there is no such model, or it cannot be had.
    """
    if name == smollm2.NAME:
        try:
            return smollm2.ensure_converted()
        except ModelUnavailable as error:
            raise UserError(str(error)) from error
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / CONFIG).is_file() or not weight_files(path):
            raise UserError(f"{path}: no model as Hugging Face lays it out: {CONFIG} and *.safetensors are looked for")
        return path.resolve()
    if not _NAME.fullmatch(name):
        raise UserError(f"{name!r} is no base model: write smollm2, a folder, or a name on Hugging Face")
    return _fetched(name, download)


def fingerprint(folder: Path) -> str:
    """SHA-256 of what decides a model: its configuration, its tokenizer, and samples of its weights.

    Samples do, because two models of one shape that differ at all differ nearly everywhere. Raises `UserError`.
    """
    digest = hashlib.sha256(json.dumps(_decides(configuration(folder)), sort_keys=True).encode())
    for name in ("tokenizer.json", "chat_template.jinja"):
        path = folder / name
        data = path.read_bytes() if path.is_file() else b""
        digest.update(f"\n{name} {len(data)}\n".encode() + data)
    for path in weight_files(folder):
        size = path.stat().st_size
        digest.update(f"\n{path.name} {size}\n".encode())
        with path.open("rb") as file:
            for block in range(BLOCKS):
                file.seek(max(0, (size - BLOCK) * block // (BLOCKS - 1)))
                digest.update(file.read(BLOCK))
    return digest.hexdigest()


def configuration(folder: Path) -> dict[str, Any]:
    """What ``config.json`` says of the language model. Raises `UserError`."""
    config = read_json(folder / CONFIG)
    return {**config, **(config.get("text_config") or {})}


def read_json(path: Path) -> dict[str, Any]:
    """One of a model's files of settings. Raises `UserError`."""
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise UserError(f"{path}: cannot be read: no JSON object")
    return data


def weight_files(folder: Path) -> list[Path]:
    """The files of a model's weights, in order."""
    return sorted(folder.glob(WEIGHTS))


def shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """The weights of a model and their shapes, from the heads of its files. Raises `UserError`."""
    found = {}
    for path in weight_files(folder):
        try:
            with path.open("rb") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                head = json.loads(file.read(min(length, MAX_HEAD)))
            found.update({name: tuple(about["shape"]) for name, about in head.items() if name != "__metadata__"})
        except (OSError, ValueError, struct.error, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{path}: no file of weights: {error}") from error
    return found


def _decides(config: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in _TELLS_NOTHING}


def _fetched(name: str, download: bool) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        path = Path(snapshot_download(name, ignore_patterns=list(NOT_NEEDED), local_files_only=not download))
    except LocalEntryNotFoundError as error:
        how = f"fetch it with `hf download {name}` where there is a network" if download else "it is fetched first"
        raise UserError(f"{name}: not on this machine; {how}, or give a folder") from error
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise UserError(f"{name}: could not be fetched from Hugging Face: {error}") from error
    if not weight_files(path):
        raise UserError(f"{name}: has no *.safetensors files; save it in that format in a folder, and give that")
    return path
