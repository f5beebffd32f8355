"""A model for fastembed: a vector for each of a few words, as a handwritten ONNX file of one kilobyte.

The format is defined in https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

WIDTH = 384
WORDS = ["[PAD]", "[UNK]", "kiln", "glaze", "query", "passage", ":"]
_FLOAT, _INT64 = 1, 7


def write(folder: Path, model_file: str) -> None:
    """Write the model and its tokenizer, which only splits at blanks and punctuation."""
    path = folder / model_file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_model())
    vocabulary = {word: place for place, word in enumerate(WORDS)}
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    for name, document in (
        ("tokenizer.json", tokenizer),
        ("config.json", {"pad_token_id": 0}),
        ("tokenizer_config.json", {"model_max_length": 512, "pad_token": "[PAD]"}),
        ("special_tokens_map.json", {"pad_token": "[PAD]", "unk_token": "[UNK]"}),
    ):
        (folder / name).write_text(json.dumps(document))


def _model() -> bytes:
    rows = [[float(column == place) for column in range(WIDTH)] for place in range(len(WORDS))]
    data = b"".join(struct.pack(f"<{WIDTH}f", *row) for row in rows)
    weights = _whole(1, len(WORDS)) + _whole(1, WIDTH) + _whole(2, _FLOAT) + _bytes(8, b"W") + _bytes(9, data)
    node = _bytes(1, b"W") + _bytes(1, b"input_ids") + _bytes(2, b"last_hidden_state") + _bytes(4, b"Gather")
    graph = _bytes(1, node) + _bytes(2, b"tiny") + _bytes(5, weights)
    graph += _bytes(11, _value("input_ids", _INT64, ("batch", "length")))
    graph += _bytes(11, _value("attention_mask", _INT64, ("batch", "length")))
    graph += _bytes(12, _value("last_hidden_state", _FLOAT, ("batch", "length", WIDTH)))
    return _whole(1, 8) + _bytes(7, graph) + _bytes(8, _whole(2, 13))


def _value(name: str, kind: int, shape: tuple[str | int, ...]) -> bytes:
    sizes = b"".join(_bytes(1, _whole(1, s) if isinstance(s, int) else _bytes(2, s.encode())) for s in shape)
    tensor = _whole(1, kind) + _bytes(2, sizes)
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, tensor))


def _varint(number: int) -> bytes:
    made = b""
    while number > 127:
        made += bytes([number & 127 | 128])
        number >>= 7
    return made + bytes([number])


def _whole(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content
