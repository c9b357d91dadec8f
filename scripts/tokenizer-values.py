#!/usr/bin/env python3
"""Writes tests/data/tokenizers.json: tiny tokenizers of every kind, and what the package tokenizers makes of texts.

Usage: scripts/tokenizer-values.py [--python PROGRAM]
Each tokenizer is trained here, on a few sentences, and comes as a tokenizer.json with texts, their ids and what these
decode to; `gguf` says what a GGUF file would hold besides the tokens, where such a file can hold it. The package is
PyPI's `tokenizers` (tried with 0.22).
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = """The quick brown fox jumps over the lazy dog. The dog, who isn't quick, didn't jump; he's lazy!
In the year 2024 there were 1234567 foxes and 89 dogs: they'll all run, won't they?
Ein schneller brauner Fuchs springt über den faulen Hund. Größe zählt nicht, sagt der Hund.
Le renard brun rapide saute par-dessus le chien paresseux, déjà fatigué à Noël.
def jump(fox):\n    if fox.is_quick:\n        return fox.over(dog)\n\n    return None
Быстрая лиса прыгает через ленивую собаку. 敏捷的棕色狐狸跳过了懒狗。""".split("\n")
TEXTS = ["", " ", "The quick brown fox", "  leading and   inner spaces  ", "don't we'll HE'S it's",
         "numbers 7 42 1234567 3.14", "über Größe naïve café Noël", "tabs\tand\nnewlines\n\n  \n\tend", "敏捷的 狐狸 ねこ 한국어",
         "Быстрая лиса", "emoji 🦊🐶 👩‍👩‍👧", "def f(x):\n    return x*2", "a<s>b</s>", "x<|end|> y", "[CLS] in text [MASK] .",
         "e\u0301 combining, ﬁ ligature, Ａ wide", "...!?;:-_()[]{}'\"", "\u00a0nbsp\u2003em\u200bzero", "unknown ☃ ☂ snow"]


def corpus_trained(tokenizer, trainer):
    tokenizer.train_from_iterator(CORPUS * 4, trainer)
    return tokenizer


def byte_level():
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<s>", "</s>", "<|end|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    corpus_trained(t, trainer)
    t.add_tokens([AddedToken("狐狸", normalized=False)])
    t.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s> $B", [("<s>", t.token_to_id("<s>"))])
    return t, {"model": "gpt2", "pre": "gpt-2", "bos": "<s>", "eos": "</s>", "add_bos": True}


def sentence_piece():
    from tokenizers import Tokenizer, decoders, models, normalizers, processors, trainers
    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    special = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256))]
    corpus_trained(t, trainers.BpeTrainer(vocab_size=420, special_tokens=special[:3], show_progress=False,
                                          limit_alphabet=50, max_token_length=8))
    learned = [k for k, _ in sorted(t.get_vocab().items(), key=lambda kv: kv[1])][3:]
    vocab = {token: i for i, token in enumerate(special + learned)}
    # A score is the better the earlier a token was learned; merges are all pairs, best scores first.
    merges = sorted(((vocab[token], token[:i], token[i:]) for token in learned for i in range(1, len(token))
                     if token[:i] in vocab and token[i:] in vocab))
    model = models.BPE(vocab, [(a, b) for _, a, b in merges], unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    out = Tokenizer(model)
    out.normalizer = t.normalizer
    out.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                     decoders.Strip(" ", 1, 0)])
    out.add_special_tokens(["<unk>", "<s>", "</s>"])
    out.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s> $B", [("<s>", 1)])
    return out, {"model": "llama", "bos": "<s>", "eos": "</s>", "unknown": "<unk>", "add_bos": True,
                 "scores": [0.0] * len(special) + [-float(i) for i in range(len(learned))]}


def word_piece():
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    corpus_trained(t, trainers.WordPieceTrainer(
        vocab_size=350, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t, {"model": "bert", "bos": "[CLS]", "separator": "[SEP]", "unknown": "[UNK]"}


def unigram():
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(__import__("tokenizers").Regex(" {2,}"), " "),
                                         normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.decoder = decoders.Metaspace()
    corpus_trained(t, trainers.UnigramTrainer(vocab_size=300, special_tokens=["<s>", "</s>", "<unk>"], unk_token="<unk>",
                                              show_progress=False))
    t.post_processor = processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 1)])
    return t, None


def refined():
    """What newer models have: a split by a regular expression, NFC, and tokens that take spaces with them."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+"
                                   r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    corpus_trained(t, trainers.BpeTrainer(vocab_size=360, special_tokens=["<s>"], show_progress=False,
                                          initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_special_tokens([AddedToken("<|end|>", rstrip=True), AddedToken("[MASK]", lstrip=True)])
    t.add_tokens([AddedToken("fox", single_word=True), "狐狸"])
    return t, None


KINDS = {"byte_level": byte_level, "sentence_piece": sentence_piece, "word_piece": word_piece, "unigram": unigram,
         "refined": refined}


def cases(tokenizer):
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        yield {"text": text, "ids": ids, "plain": tokenizer.encode(text, add_special_tokens=False).ids,
               "decoded": tokenizer.decode(ids)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", metavar="PROGRAM", help="a Python that has the package tokenizers")
    args = parser.parse_args()
    if args.python:
        return subprocess.run([args.python, __file__], check=False).returncode
    out = {}
    for name, make in KINDS.items():
        tokenizer, gguf = make()
        out[name] = {"tokenizer": json.loads(tokenizer.to_str()), "gguf": gguf, "cases": list(cases(tokenizer))}
    rows = ",\n".join(f"{json.dumps(n)}: {json.dumps(row, ensure_ascii=False, separators=(',', ':'))}"
                      for n, row in out.items())
    (ROOT / "tests/data/tokenizers.json").write_text("{\n" + rows + "\n}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
