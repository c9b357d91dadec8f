#!/usr/bin/env python3
"""`tuff chat`, `tuff perplexity`, `tuff finetune`, `tuff merge` and `tuff quantize` from outside, with small random
models.

Usage: language_test.py TUFF
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

MODELS = pathlib.Path(__file__).resolve().parent.parent / "data/language"
MODEL = MODELS / "qwen2.gguf"
GREEDY = ["--temperature", "0", "--device", "CPU"]


class Language(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("TUFF_")}

    def tuff(self, code, *arguments, lines=""):
        run = subprocess.run([TUFF, *map(str, arguments)], capture_output=True, cwd=self.folder, timeout=60,
                             check=False, env=self.env, input=lines, encoding="utf-8")
        self.assertEqual(run.returncode, code, (arguments, run.stdout, run.stderr))
        return run

    def answer(self, *arguments):
        return json.loads(self.tuff(0, "chat", *arguments, *GREEDY, "--json").stdout)

    def with_template(self):
        """A folder whose template has the letters of all messages, one turn behind the other."""
        model = self.folder / "model"
        shutil.copytree(MODELS / "llama3", model)
        (model / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
        return model

    def test_a_text_goes_on(self):
        a = self.answer(MODEL, "--raw", "--prompt", "abc", "--tokens", 6)
        self.assertEqual((len(a["tokens"]), a["finish"], a["prompt_tokens"]), (6, "length", 3))
        self.assertGreater(a["seconds_to_first_token"], 0)
        plain = self.tuff(0, "chat", MODEL, "--raw", "--prompt", "abc", "--tokens", 6, *GREEDY)
        self.assertEqual(plain.stdout, a["text"] + "\n")
        self.assertIn("a second", plain.stderr)
        stopped = self.answer(MODEL, "--raw", "--prompt", "abc", "--tokens", 6, "--stop", a["text"][2])
        self.assertEqual(stopped["finish"], "stop")
        self.assertNotIn(a["text"][2], stopped["text"])

    def test_an_adapter_is_trained_and_used(self):
        text = self.folder / "text"
        text.write_text("abcdefgh" * 60)
        common = ["finetune", MODEL, "--text", text, "--context", 16, "--rank", 2, "--lr", 0.02, "--device", "CPU",
                  "--json", "--out", "adapter"]
        rows = [json.loads(line) for line in
                self.tuff(0, *common, "--steps", 30, "--save", "state.safetensors").stdout.splitlines()]
        losses = [r["loss"] for r in rows if r["event"] == "step"]
        self.assertEqual((len(losses), rows[-1]["event"], rows[-1]["adapter"]), (30, "done", "adapter"))
        self.assertLess(losses[-1], losses[0])
        asked = [r["val_loss"] for r in rows if r["event"] == "validation"]
        self.assertLess(asked[-1], asked[0])
        plain, trained = (self.answer(MODEL, *more, "--raw", "--prompt", "abcd", "--tokens", 4)["text"]
                          for more in ([], ["--lora", "adapter"]))
        self.assertNotEqual(plain, trained)
        plain, trained = (json.loads(self.tuff(0, "perplexity", MODEL, "--text", text, "--context", 16, "--device", "CPU",
                                               "--json", *more).stdout)["perplexity"]
                          for more in ([], ["--lora", "adapter"]))
        self.assertLess(trained, plain)
        resumed = self.tuff(0, *common, "--steps", 33, "--resume", "state.safetensors").stdout
        self.assertEqual(sum('"event":"step"' in line for line in resumed.splitlines()), 3)

    def test_an_adapter_is_merged(self):
        text = self.folder / "text"
        text.write_text("abcdefgh" * 60)
        run = self.tuff(0, "finetune", MODEL, "--text", text, "--context", 16, "--rank", 2, "--lr", 0.02, "--device", "CPU",
                        "--steps", 10, "--merged", "merged.gguf", "--type", "f32")
        self.assertRegex(run.stdout, r"adapter: tuff-adapter .*\nmodel: merged.gguf: 0.. MiB of weights")
        self.tuff(0, "merge", MODEL, "again.gguf", "--lora", "tuff-adapter", "--type", "f32", "--device", "CPU")
        self.assertEqual(*((self.folder / name).read_bytes() for name in ("merged.gguf", "again.gguf")))
        want, got = (self.answer(*model, "--raw", "--prompt", "abcd", "--tokens", 8)["text"]
                     for model in ([MODEL, "--lora", "tuff-adapter"], ["merged.gguf"]))
        self.assertEqual(got, want)
        again = ["merge", MODEL, "again.gguf", "--lora", "tuff-adapter", "--device", "CPU"]
        self.assertIn("again.gguf is there already", self.tuff(1, *again).stderr)
        self.assertRegex(self.tuff(0, *again, "--force").stdout, r"^again.gguf: .* tensors: \d+ F16, \d+ F32\n$")

    def test_all_weights_are_trained(self):
        text = self.folder / "text"
        text.write_text("abcdefgh" * 60)
        common = ["--full", "--text", text, "--context", 16, "--lr", 0.002, "--device", "CPU", "--steps", 10]
        self.tuff(0, "finetune", MODEL, *common)
        loss = [json.loads(self.tuff(0, "perplexity", model, "--text", text, "--context", 16, "--device", "CPU",
                                     "--json").stdout)["perplexity"] for model in (MODEL, "tuff-model/model.gguf")]
        self.assertLess(loss[1], loss[0])
        self.assertIn("model.gguf is there already", self.tuff(1, "finetune", MODEL, *common).stderr)
        for option in (["--rank", 4], ["--merged", "x"], ["--lora", "x"]):
            self.assertIn("--full trains none", self.tuff(2, "finetune", MODEL, *common, *option).stderr)
        self.tuff(0, "quantize", MODEL, "q8.gguf", "--type", "q8_0", "--device", "CPU")
        self.assertIn("packed blocks, Q8_0, which are not trained",
                      self.tuff(1, "finetune", "q8.gguf", *common, "--out", "other").stderr)

    def test_what_cannot_be_learned_is_named(self):
        text = self.folder / "text"
        text.write_text("a")
        for code, wanted, *arguments in (
                (2, "--text or --chat is needed", MODEL), (1, "none: no such file", MODEL, "--text", "none"),
                (1, "no token that could be learned", MODEL, "--text", text),
                (2, "--type is of what", MODEL, "--text", text, "--type", "f16"),
                (1, "'q9' is none of the types", MODEL, "--text", text, "--merged", "x.gguf", "--type", "q9"),
                (2, "--context 65: the model was trained for 64", MODEL, "--text", text, "--context", 65),
                (1, "no chat template", MODEL, "--chat", text),
                (1, "an adapter of 'wq'", MODEL, "--text", MODEL, "--target", "wq")):
            run = self.tuff(code, "finetune", *arguments, "--device", "CPU")
            self.assertIn(wanted, run.stderr)
            self.assertEqual(run.stderr.count("\n"), 1, run.stderr)

    def test_drafts_change_nothing(self):
        plain, *drafted = (self.answer(MODEL, "--raw", "--prompt", "abcabcab", "--tokens", 20, *more)["tokens"]
                           for more in ([], ["--draft-tokens", 5], ["--draft", MODELS / "qwen3.gguf"]))
        self.assertEqual(drafted, [plain, plain])

    def test_a_cache_in_blocks(self):
        model = MODELS / "qwen3_wide.gguf"
        halves, blocks = (self.answer(model, "--raw", "--prompt", "abc", "--tokens", 2, *more)
                          for more in ([], ["--cache", "q8_0"]))
        self.assertEqual(len(blocks["tokens"]), len(halves["tokens"]))
        self.assertIn("f16", self.tuff(2, "chat", model, "--cache", "q4").stderr)

    def test_draws_follow_the_seed(self):
        def text(seed):
            return self.tuff(0, "chat", MODEL, "--raw", "--prompt", "abc", "--tokens", 12, "--seed", seed,
                             "--device", "CPU").stdout
        self.assertEqual(text(3), text(3))
        self.assertNotEqual(text(3), text(4))

    def test_a_conversation_is_read_on(self):
        model = self.with_template()
        run = self.tuff(0, "chat", model, "--tokens", 4, *GREEDY, "--json",
                        lines="abc\nde\n\n/reset\nabc\n/exit\nabc\n")
        first, second, again = (json.loads(line) for line in run.stdout.splitlines())
        self.assertEqual(first["prompt_tokens"], 3)
        self.assertEqual(again["tokens"], first["tokens"], "/reset forgets")
        one = self.answer(model, "--prompt", "abc" + first["text"] + "de", "--tokens", 4)
        self.assertEqual(second["tokens"], one["tokens"], "the prompt is the whole conversation")
        system = self.answer(model, "--system", "zz", "--prompt", "abc", "--tokens", 4)
        self.assertEqual(system["tokens"], self.answer(model, "--prompt", "zzabc", "--tokens", 4)["tokens"])

    def test_a_long_conversation_forgets_its_beginning(self):
        run = self.tuff(0, "chat", self.with_template(), "--tokens", 4, "--context", 16, *GREEDY, "--json",
                        lines="abcdef\n" * 5)
        self.assertEqual(len(run.stdout.splitlines()), 5)
        end, goes_on = (self.answer(MODEL, "--raw", "--prompt", "abc", "--tokens", 40, "--context", 16, *more)
                        for more in ([], ["--keep", 2]))
        self.assertEqual((len(end["tokens"]), len(goes_on["tokens"])), (13, 40))
        self.assertEqual(goes_on["tokens"][:13], end["tokens"])

    def test_perplexity(self):
        text = self.folder / "text"
        text.write_text("thequickbrownfoxjumpsoverthelazydog" * 3)
        p = json.loads(self.tuff(0, "perplexity", MODEL, "--text", text, "--context", 16, "--device", "CPU",
                                 "--json").stdout)
        self.assertGreater(p["perplexity"], 1)
        self.assertEqual(p["tokens"] % 7, 0)
        plain = self.tuff(0, "perplexity", MODEL, "--text", text, "--context", 16, "--pieces", 2, "--device", "CPU")
        self.assertRegex(plain.stdout, r"^perplexity [0-9.]+ \+- [0-9.]+, of 14 tokens\n$")

    def test_quantize(self):
        done = self.tuff(0, "quantize", MODEL, "small.gguf", "--type", "q8_0", "--device", "CPU")
        self.assertRegex(done.stdout, r"^small.gguf: 0.0 MiB of weights, from 0.0; tensors: .*\d+ Q8_0\n$")
        plain, small = (self.answer(m, "--raw", "--prompt", "abc", "--tokens", 2) for m in (MODEL, "small.gguf"))
        self.assertEqual(len(small["tokens"]), len(plain["tokens"]))
        again = ["quantize", MODEL, "small.gguf", "--type", "q4_0", "--device", "CPU"]
        self.assertIn("small.gguf is there already", self.tuff(1, *again).stderr)
        before = (self.folder / "small.gguf").read_bytes()
        self.env["TUFF_WRITE_FAULT"] = "file:small.gguf,write:1,full:5000"
        self.assertIn("No space left", self.tuff(1, *again, "--force").stderr)
        self.assertEqual((self.folder / "small.gguf").read_bytes(), before)
        del self.env["TUFF_WRITE_FAULT"]
        self.tuff(0, *again, "--force")
        self.assertLess((self.folder / "small.gguf").stat().st_size, len(before))

    def test_errors_name_the_value(self):
        def error(code, *arguments):
            run = self.tuff(code, *arguments)
            self.assertEqual(run.stdout, "")
            return run.stderr
        (self.folder / "text").write_text("abc")
        damaged = self.folder / "damaged.gguf"
        damaged.write_bytes(MODEL.read_bytes()[:20000])
        self.assertIn("no chat template: --raw", error(1, "chat", MODEL, "--prompt", "a", *GREEDY))
        self.assertIn("No such file", error(1, "chat", "missing.gguf"))
        self.assertIn("damaged.gguf", error(1, "chat", damaged))
        self.assertIn("general.architecture", error(1, "chat", MODELS.parent / "ggml.gguf"))
        self.assertIn("trained for 1 to 64",
                      error(1, "chat", MODEL, "--raw", "--context", 65, "--prompt", "a", *GREEDY))
        self.assertIn("exceed the context of 8",
                      error(1, "chat", MODEL, "--raw", "--context", 8, "--prompt", "abcdefghijk", *GREEDY))
        self.assertIn("3 tokens: two pieces of 32", error(1, "perplexity", MODEL, "--text", "text", "--context", 32))
        self.assertIn("--temperature", error(2, "chat", MODEL, "--temperature", "hot"))


if __name__ == "__main__":
    TUFF = sys.argv[1]
    unittest.main(argv=sys.argv[:1])
