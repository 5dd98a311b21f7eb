"""A tiny language model that knows a few answers by heart, made in a moment and saved for a server to load.

    python parrot.py huggingface FOLDER
    python parrot.py gguf FILE

It is a Llama with one layer of random weights. The layer's outputs are multiplied by zero, so what comes next depends
on the last token alone: each output row is the embedding of the token before it. The pieces of an answer are tokens of
their own (cut by bytes, so that some begin in the middle of a character), and each one calls for the next. The chat
template looks into the last message and ends the prompt with the token that begins the answer.

So the server does all its real work (template, tokens, sampling, stopping, streaming), and what it says is known. This
file runs in the server's environment, with numpy and the package that writes the format.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from answers import ENDLESS, HEARD

WIDTH = 512
HEADS = 4
INNER = 128
CONTEXT = 4096
SHARPNESS = 20.0
PIECE = 5  # bytes

ROLES = ("system", "user", "assistant", "developer", "tool")
END = "<|end|>"


def byte_letters() -> list[str]:
    """The printable letter that stands for each byte in byte-level vocabularies (GPT-2's convention)."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = iter(range(0x100, 0x200))
    return [chr(byte) if byte in plain else chr(next(rest)) for byte in range(256)]


class Parrot:
    """Vocabulary, chat template and weights."""

    def __init__(self) -> None:
        letters = byte_letters()
        self.special = [END, *(f"<|{role}|>" for role in ROLES), *(f"<|say{n}|>" for n in range(len(HEARD)))]
        self.tokens = [*self.special, *letters]
        known = set(self.tokens)
        self.follows: dict[int, int] = {}
        end, quote, brace = self.id(END), self.id('"'), self.id("}")
        for token in self.tokens:
            # Where a grammar forbids what comes by heart, as in server-side structured output: strings end soon, and
            # after a closed object there is nothing.
            self.follows[self.id(token)] = quote
        self.follows[brace] = end
        for number, (_, answer) in enumerate(HEARD):
            before = begin = self.id(f"<|say{number}|>")
            for piece in self._pieces(answer.encode(), known, letters):
                self.tokens.append(piece)
                self.follows[before] = before = len(self.tokens) - 1
            self.follows[before] = self.follows[begin] if answer == ENDLESS else end

    def id(self, token: str) -> int:
        """The number of a token."""
        return self.tokens.index(token)

    def _pieces(self, answer: bytes, known: set[str], letters: list[str]) -> list[str]:
        pieces, start, size = [], 0, PIECE
        while start < len(answer):
            piece = "".join(letters[byte] for byte in answer[start : start + size])
            if piece in known and start + size < len(answer):
                size += 1
                continue
            assert piece not in known, f"no piece of its own at byte {start} of {answer!r}"
            known.add(piece)
            pieces.append(piece)
            start, size = start + size, PIECE
        return pieces

    def template(self) -> str:
        """The chat template (Jinja)."""
        begin = "{%- for m in messages -%}<|{{ m.role }}|>{{ m.content }}" + END + "{%- endfor -%}"
        choice = "{%- set last = messages[-1].content -%}"
        for number, (phrase, _) in enumerate(HEARD[:-1]):
            choice += f"{{%- {'elif' if number else 'if'} {phrase!r} in last -%}}<|say{number}|>"
        return begin + choice + f"{{%- else -%}}<|say{len(HEARD) - 1}|>{{%- endif -%}}"

    def weights(self) -> dict[str, np.ndarray[Any, Any]]:
        """The tensors, by their names in a Llama of Hugging Face's."""
        rng = np.random.default_rng(0)
        # Orthogonal rows as long as the norm makes them, so that a token says nothing about any other.
        embedding = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0][: len(self.tokens)] * WIDTH**0.5
        assert len(embedding) == len(self.tokens), f"{len(self.tokens)} tokens want a WIDTH of as much"
        output = np.zeros_like(embedding)
        for before, after in self.follows.items():
            output[after] += embedding[before] * SHARPNESS / WIDTH
        made = {"model.embed_tokens.weight": embedding, "lm_head.weight": output, "model.norm.weight": np.ones(WIDTH)}
        layer = "model.layers.0."
        for name in ("q", "k", "v"):
            made[f"{layer}self_attn.{name}_proj.weight"] = rng.normal(0, 0.02, (WIDTH, WIDTH))
        for name in ("gate", "up"):
            made[f"{layer}mlp.{name}_proj.weight"] = rng.normal(0, 0.02, (INNER, WIDTH))
        made[f"{layer}self_attn.o_proj.weight"] = np.zeros((WIDTH, WIDTH))
        made[f"{layer}mlp.down_proj.weight"] = np.zeros((WIDTH, INNER))
        for name in ("input", "post_attention"):
            made[f"{layer}{name}_layernorm.weight"] = np.ones(WIDTH)
        return {name: tensor.astype(np.float32) for name, tensor in made.items()}


def write_huggingface(parrot: Parrot, folder: Path) -> None:
    """Save it as transformers loads it."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    end = parrot.id(END)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(parrot.tokens),
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "num_hidden_layers": 1,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "max_position_embeddings": CONTEXT,
        "tie_word_embeddings": False,
        "eos_token_id": end,
        "pad_token_id": end,
        "bos_token_id": None,
        "dtype": "float32",
    }
    special = [
        {"id": parrot.id(token), "content": token, "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for token in parrot.special
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": {token: n for n, token in enumerate(parrot.tokens)}, "merges": []},
    }
    described = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "model_max_length": CONTEXT}
    described |= {"chat_template": parrot.template(), "clean_up_tokenization_spaces": False}
    save_file(parrot.weights(), folder / "model.safetensors", metadata={"format": "pt"})
    for name, content in (
        ("config.json", config),
        ("generation_config.json", {"eos_token_id": end, "pad_token_id": end, "do_sample": True}),
        ("tokenizer.json", tokenizer),
        ("tokenizer_config.json", described),
    ):
        (folder / name).write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")


def write_gguf(parrot: Parrot, file: Path) -> None:
    """Save it as llama.cpp loads it."""
    import gguf

    file.parent.mkdir(parents=True, exist_ok=True)
    names = {
        "model.embed_tokens.weight": "token_embd.weight",
        "lm_head.weight": "output.weight",
        "model.norm.weight": "output_norm.weight",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        "self_attn.o_proj": "attn_output",
    }
    names |= {f"self_attn.{name}_proj": f"attn_{name}" for name in "qkv"}
    names |= {f"mlp.{name}_proj": f"ffn_{name}" for name in ("gate", "up", "down")}
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_name("parrot")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(parrot.tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(parrot.tokens)
    control = len(parrot.special)
    kinds = [gguf.TokenType.CONTROL] * control + [gguf.TokenType.NORMAL] * (len(parrot.tokens) - control)
    writer.add_token_types(kinds)
    writer.add_token_merges(["Ġ Ġ"])  # it insists on some; this one joins two spaces, which nothing here tells apart
    writer.add_eos_token_id(parrot.id(END))
    writer.add_bos_token_id(parrot.id(END))
    writer.add_add_bos_token(False)
    writer.add_chat_template(parrot.template())
    for name, tensor in parrot.weights().items():
        _, _, short = name.rpartition("layers.0.")
        plain = short.removesuffix(".weight")
        writer.add_tensor(names[name] if name in names else f"blk.0.{names[plain]}.weight", tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    kind, place = sys.argv[1:]
    {"huggingface": write_huggingface, "gguf": write_gguf}[kind](Parrot(), Path(place))
