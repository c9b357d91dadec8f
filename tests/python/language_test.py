"""tuff.language: models, sequences, draws and answers, as Python has them. Usage: language_test.py SOURCE_FOLDER"""
import pathlib
import sys
import tempfile
import unittest

import tuff

MODEL = pathlib.Path(sys.argv[1]) / "tests/data/language/qwen2.gguf"
GREEDY = tuff.language.Sampling(temperature=0)


class Language(unittest.TestCase):
    def setUp(self):
        self.model = tuff.language.Model.open(MODEL, device="CPU")

    def test_description(self):
        d = self.model.description()
        self.assertEqual((d.name, d.architecture, d.layers, d.width, d.heads, d.kv_heads, d.vocabulary, d.context),
                         ("qwen2", "qwen2", 2, 32, 4, 2, 48, 64))
        self.assertGreater(d.parameters, 10_000)
        self.assertGreater(d.weight_bytes, 2 * d.parameters)
        self.assertEqual(self.model.device, "CPU")

    def test_a_sequence_reads_what_the_model_computes(self):
        s = tuff.language.Sequence(self.model, context=32, cache="f32")
        got = s.read([3, 1, 4]).tolist()
        want = self.model(tuff.tensor([3, 1, 4], device="CPU"))[2].tolist()
        for a, b in zip(got, want):
            self.assertAlmostEqual(a, b, places=4)
        self.assertEqual((s.tokens(), s.context()), ([3, 1, 4], 32))
        with self.assertRaisesRegex(tuff.InvalidArgument, "blocks of 32 elements, which a head's 8 are no"):
            tuff.language.Sequence(self.model, cache="q8_0")
        s.truncate(1)
        self.assertEqual(s.tokens(), [3])
        each = s.read_each([1, 4])
        self.assertEqual(tuple(each.shape), (2, 48))
        for a, b in zip(each[1].tolist(), want):
            self.assertAlmostEqual(a, b, places=4)
        s.shift(1, 1)
        self.assertEqual(s.tokens(), [3, 4])
        s.truncate(1)
        with self.assertRaisesRegex(tuff.InvalidArgument, "token 48 is none of the vocabulary's 48"):
            s.read([48])

    def test_adapters(self):
        tokens = tuff.tensor([[3, 1, 4, 1], [5, 9, 2, 6]], device="CPU")
        adapter = tuff.language.Adapter.create(self.model, rank=2, targets=["q_proj", "down_proj"])
        self.assertEqual((adapter.rank, adapter.alpha, adapter.targets), (2, 32, ["q_proj", "down_proj"]))
        model = self.model.with_adapter(adapter)
        parameters = adapter.parameters()
        optimizer = tuff.optim.SGD(list(parameters.values()), lr=0.5)

        def loss():
            return model(tokens)[:, :-1].flatten(0, 1).cross_entropy(tokens[:, 1:].flatten())
        first = loss()
        first.backward()
        optimizer.step([first])
        self.assertLess(loss().item(), first.item())
        with tempfile.TemporaryDirectory() as folder:
            adapter.save(folder, base="qwen2")
            again = tuff.language.Adapter.open(folder, self.model)
            for name, value in parameters.items():
                self.assertEqual(again.parameters()[name].tolist(), value.tolist())
            trained = self.model.with_adapter(again)
            done = trained.save(pathlib.Path(folder) / "merged.gguf", type="f32")
            self.assertGreater(done.tensors["F32"], 4)
            merged = tuff.language.Model.open(pathlib.Path(folder) / "merged.gguf", device="CPU")
            self.assertLess((merged(tokens) - trained(tokens)).abs().max().item(), 1e-4)
        packed = self.model(tokens[0], texts=tuff.tensor([0, 0, 1, 1], device="CPU"),
                            positions=tuff.tensor([0, 1, 0, 1], device="CPU"))
        alone = self.model(tokens[0, 2:].contiguous())
        self.assertLess((packed[2:] - alone).abs().max().item(), 1e-4)

    def test_all_weights(self):
        tokens = tuff.tensor([[3, 1, 4, 1], [5, 9, 2, 6]], device="CPU")
        parameters = self.model.parameters()
        self.assertIn("blk.0.attn_q.weight", parameters)
        model = self.model.with_parameters(parameters)
        optimizer = tuff.optim.SGD(list(parameters.values()), lr=0.05)
        first = model(tokens)[:, :-1].flatten(0, 1).cross_entropy(tokens[:, 1:].flatten())
        first.backward()
        optimizer.step([first])
        again = model(tokens)[:, :-1].flatten(0, 1).cross_entropy(tokens[:, 1:].flatten())
        self.assertLess(again.item(), first.item())
        with tempfile.TemporaryDirectory() as folder:
            to = pathlib.Path(folder) / "tuned.gguf"
            model.save(to, type="f32")
            tuned = tuff.language.Model.open(to, device="CPU")
            self.assertLess((tuned(tokens) - model(tokens)).abs().max().item(), 1e-4)
            with self.assertRaisesRegex(tuff.InvalidArgument, "is there already"):
                model.save(to=to)

    def test_answers(self):
        s = tuff.language.Sequence(self.model)
        pieces = []
        a = tuff.language.generate(s, [5, 6], tokens=6, sampling=GREEDY, logprobs=1,
                                   on_piece=pieces.append)
        self.assertEqual((len(a.tokens), a.finish, "".join(p.text for p in pieces)), (6, "length", a.text))
        self.assertEqual([t for p in pieces for t in p.tokens], a.tokens)
        self.assertEqual([c.chosen.token for p in pieces for c in p.logprobs], a.tokens)
        self.assertEqual(a.logprobs[0].top[0].logprob, a.logprobs[0].chosen.logprob)
        c = tuff.language.generate(s, [5, 6], tokens=6, sampling=GREEDY, draft_tokens=4)
        self.assertEqual(c.tokens, a.tokens)
        draft = tuff.language.Sequence(tuff.language.Model.open(MODEL.parent / "qwen3.gguf", device="CPU"))
        e = tuff.language.generate(s, [5, 6], tokens=6, sampling=GREEDY, draft_tokens=2, draft=draft)
        self.assertEqual(e.tokens, a.tokens)
        d = tuff.language.generate(s, [5, 6], tokens=80, sampling=GREEDY, keep=2)
        self.assertEqual((len(d.tokens), d.tokens[:6]), (80, a.tokens))
        b = tuff.language.generate(s, [5, 6], tokens=6, sampling=GREEDY, on_piece=lambda piece: False)
        self.assertEqual((b.tokens, b.finish, b.prompt_tokens), (a.tokens[:1], "cancelled", 1))
        self.assertGreater(a.prompt_seconds, 0)

        def broken(piece):
            raise ValueError("no")
        with self.assertRaisesRegex(ValueError, "no"):
            tuff.language.generate(s, [5, 6], tokens=6, on_piece=broken)

    def test_answers_side_by_side(self):
        batch = tuff.language.Batch(self.model, sequences=2, cache_tokens=64, draft=self.model)
        s = tuff.language.Sequence(self.model)
        want = {batch.add([5 + i], tokens=4, sampling=GREEDY, draft_tokens=2): [5 + i] for i in range(3)}
        graphs = []
        batch.warm_up(lambda n: graphs.append(n) or n < 2)
        self.assertEqual(graphs, [1, 2])
        dropped = batch.add([1], on_piece=lambda piece: self.fail("it was cancelled"))
        batch.cancel(dropped)
        self.assertEqual(batch.context(), 64)
        while not batch.idle():
            for i, answer in batch.step():
                prompt = want.pop(i)
                self.assertEqual(answer.tokens, tuff.language.generate(s, prompt, tokens=4, sampling=GREEDY).tokens)
        self.assertEqual((want, batch.stats().tokens), ({}, 12))
        self.assertGreater(batch.stats().accepted_tokens, 0)
        self.assertGreaterEqual(batch.stats().draft_tokens, batch.stats().accepted_tokens)

    def test_draws(self):
        sampler = tuff.language.Sampler(tuff.language.Sampling(temperature=0, bias={2: 9.0}))
        self.assertEqual(sampler.draw([1.0, 2.0, 0.0]), 2)
        self.assertEqual(tuff.language.Sampling(top_k=3, seed=5).seed, 5)
        with self.assertRaisesRegex(tuff.InvalidArgument, "top_p is 0"):
            tuff.language.Sampler(tuff.language.Sampling(top_p=0))

    def test_embeddings(self):
        a, b = (tuff.language.embed(self.model, tokens) for tokens in ([3, 1, 4], [3, 1, 5]))
        self.assertAlmostEqual((a * a).sum().item(), 1, places=5)
        self.assertGreater((a * b).sum().item(), 0.5)

    def test_quantize(self):
        with tempfile.TemporaryDirectory() as folder:
            to = pathlib.Path(folder) / "small.gguf"
            done = tuff.language.quantize(MODEL, to, "q8_0", device="CPU")
            self.assertGreater(done.bytes_before, done.bytes)
            self.assertGreater(done.tensors["Q8_0"], 8)
            with self.assertRaisesRegex(tuff.InvalidArgument, "is there already"):
                tuff.language.quantize(MODEL, to, "q8_0", device="CPU")
            again = tuff.language.quantize(source=MODEL, to=to, type="f32", device="CPU", overwrite=True)
            self.assertGreater(again.bytes, done.bytes)

    def test_perplexity(self):
        p = tuff.language.perplexity(self.model, list(range(40)), context=16)
        self.assertEqual(p.tokens, 14)
        self.assertGreater(p.value, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
