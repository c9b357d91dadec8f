#!/usr/bin/env python3
"""Writes the seeds of fuzz_text: make_text_corpus.py FOLDER, as FOLDER/text/seed-N.

A 'J' before a tokenizer.json, a 'G' before a GGUF file of a tokenizer, a 'C' before a chat template, an 'N' before a grammar in
its notation, an 'S' before a JSON schema: those of tests/data,
with vocabularies short enough for the fuzzer to reach what stands behind them.
"""
import json
import pathlib
import struct
import sys

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests/data"
TOKENS = 40
GRAMMARS = ['root ::= (a | "x" [^y-z\\]é]{2,3})+ # text\na ::=\n  "\\u00e9" . b?\nb ::= "(" root ")" | ""']
SCHEMAS = [{"type": ["object", "null"], "properties": {"a": {"$ref": "#/$defs/t"}, "b": {"enum": [1, "x"]}},
            "required": ["a"], "additionalProperties": {"type": "number", "minimum": -3, "exclusiveMaximum": 12},
            "$defs": {"t": {"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"pattern": "^(a|\\d{2})+[^x]*$"}]},
                            "minItems": 1, "maxItems": 4}}},
           {"allOf": [{"prefixItems": [{"const": None}, {"format": "date-time"}]}, {"items": {"maxLength": 3}}]},
           {"type": "integer", "multipleOf": 5, "minimum": -3, "exclusiveMaximum": 400},
           {"multipleOf": 0.25, "nullable": True},
           {"properties": {"a": {}, "b": {}}, "additionalProperties": True, "minProperties": 1, "maxProperties": 2},
           {"patternProperties": {"^a": {"type": "null"}}, "minProperties": 1}, {"propertyNames": {"maxLength": 2}}]


def short(tokenizer):
    model = tokenizer["model"]
    vocabulary = model["vocab"]
    if isinstance(vocabulary, dict):
        model["vocab"] = dict(sorted(vocabulary.items(), key=lambda item: item[1])[:TOKENS])
        if "merges" in model:
            def known(merge):
                parts = merge if isinstance(merge, list) else merge.split(" ")
                return all(p in model["vocab"] for p in [*parts, "".join(parts)])
            model["merges"] = [m for m in model["merges"] if known(m)]
    else:
        model["vocab"] = vocabulary[:TOKENS]
    tokenizer["added_tokens"] = [t for t in tokenizer["added_tokens"] if t["id"] < TOKENS]
    return tokenizer


def text(t):
    return struct.pack("<Q", len(t.encode())) + t.encode()


def gguf(model, pre, tokens):
    """Version 3, no tensors: a model, a pre-tokenizer, tokens with types and scores, merges."""
    items = [("model", struct.pack("<I", 8) + text(model)), ("pre", struct.pack("<I", 8) + text(pre)),
             ("tokens", struct.pack("<IIQ", 9, 8, len(tokens)) + b"".join(map(text, tokens))),
             ("token_type", struct.pack("<IIQ", 9, 5, len(tokens)) + struct.pack("<i", 1) * len(tokens)),
             ("scores", struct.pack("<IIQ", 9, 6, len(tokens)) +
              b"".join(struct.pack("<f", -i) for i in range(len(tokens)))),
             ("merges", struct.pack("<IIQ", 9, 8, 1) + text("a b")),
             ("unknown_token_id", struct.pack("<II", 4, 0)), ("bos_token_id", struct.pack("<II", 4, 1))]
    return (b"GGUF" + struct.pack("<IQQ", 3, 0, len(items)) +
            b"".join(text("tokenizer.ggml." + key) + value for key, value in items))


def main():
    folder = pathlib.Path(sys.argv[1]) / "text"
    folder.mkdir(parents=True, exist_ok=True)
    tokenizers = json.loads((DATA / "tokenizers.json").read_text(encoding="utf-8"))
    seeds = ["J" + json.dumps(short(t["tokenizer"]), ensure_ascii=False) for t in tokenizers.values()]
    templates = json.loads((DATA / "chat_templates.json").read_text(encoding="utf-8"))
    seeds += ["C" + case["template"] for case in templates["cases"]]
    seeds += ["N" + grammar for grammar in GRAMMARS] + ["S" + json.dumps(schema) for schema in SCHEMAS]
    seeds = [s.encode() for s in seeds]
    tokens = ["<unk>", "<s>", "a", "b", "ab", "▁the", "[MASK]", "##c", "Ġ", "<0x0A>"]
    for model, pre in (("gpt2", "llama-bpe"), ("gpt2", "gpt-2"), ("llama", "default"), ("bert", "default"),
                       ("t5", "default")):
        seeds.append(b"G" + gguf(model, pre, tokens))
    for i, seed in enumerate(seeds):
        (folder / f"seed-{i}").write_bytes(seed)


if __name__ == "__main__":
    main()
