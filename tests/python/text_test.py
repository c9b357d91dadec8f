"""tuff.Tokenizer, tuff.TextStream, tuff.ChatTemplate and tuff.Grammar."""
import json
import pathlib
import tempfile
import unittest

import tuff

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
FIXTURES = json.loads((DATA / "tokenizers.json").read_text(encoding="utf-8"))


class GrammarTest(unittest.TestCase):
    def test_texts_and_dicts(self):
        schema = {"type": "object", "properties": {"é": {"type": "integer"}}, "required": ["é"]}
        for grammar in (tuff.Grammar.from_json_schema(schema), tuff.Grammar.from_json_schema(json.dumps(schema))):
            self.assertTrue(grammar.accepts('{"é": 12}'))
            self.assertFalse(grammar.accepts('{"é": 1.2}'))
        self.assertTrue(tuff.Grammar.json_object().accepts('{"a": [null]}'))
        self.assertFalse(tuff.Grammar().defined())
        self.assertTrue(tuff.Grammar().accepts("anything"))
        with self.assertRaisesRegex(ValueError, "line 2: ::= was wanted"):
            tuff.Grammar.parse('root ::= "x"\nb')
        with self.assertRaisesRegex(tuff.Unsupported, "/uniqueItems is not known"):
            tuff.Grammar.from_json_schema({"type": "array", "uniqueItems": True})


class TokenizerTest(unittest.TestCase):
    def test_ids_and_texts(self):
        for name, fixture in FIXTURES.items():
            tokenizer = tuff.Tokenizer.from_json(json.dumps(fixture["tokenizer"]))
            for case in fixture["cases"]:
                with self.subTest(name, text=case["text"]):
                    self.assertEqual(tokenizer.encode(case["text"]), case["ids"])
                    self.assertEqual(tokenizer.encode(case["text"], add_special=False), case["plain"])
                    self.assertEqual(tokenizer.decode(case["ids"]), case["decoded"])

    def test_folder_with_its_other_files(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "tokenizer.json").write_text(json.dumps(FIXTURES["byte_level"]["tokenizer"]), encoding="utf-8")
            (folder / "tokenizer_config.json").write_text(
                '{"eos_token": {"content": "</s>"}, "chat_template": "{{ messages[0].content }}"}', encoding="utf-8")
            (folder / "generation_config.json").write_text('{"eos_token_id": [1, 2]}', encoding="utf-8")
            tokenizer = tuff.Tokenizer.open(folder)
            self.assertEqual((tokenizer.bos(), tokenizer.eos(), tokenizer.pad()), (0, 1, None))
            self.assertTrue(tokenizer.is_end(1) and tokenizer.is_end(2) and not tokenizer.is_end(0))
            self.assertEqual(tuff.ChatTemplate(tokenizer.chat_template()).render([{"content": "hé"}]), "hé")
            (folder / "tokenizer.json").write_text("{", encoding="utf-8")
            with self.assertRaisesRegex(tuff.IoError, "tokenizer.json"):
                tuff.Tokenizer.open(folder)

    def test_tokens(self):
        tokenizer = tuff.Tokenizer.from_json(json.dumps(FIXTURES["byte_level"]["tokenizer"]))
        self.assertEqual(len(tokenizer), tokenizer.size())
        self.assertEqual(tokenizer.token(tokenizer.find("Ġfox")), "Ġfox")
        self.assertEqual(tokenizer.piece(tokenizer.find("Ġfox")), b" fox")
        self.assertIsNone(tokenizer.find("no such token"))
        self.assertTrue(tokenizer.is_special(0))
        stream = tuff.TextStream(tokenizer)
        self.assertEqual("".join(map(stream.push, tokenizer.encode("über 🦊"))) + stream.finish(), "über 🦊")
        with self.assertRaisesRegex(tuff.InvalidArgument, "token 9999"):
            tokenizer.decode([9999])

    def test_what_is_not_known_is_named(self):
        broken = json.loads(json.dumps(FIXTURES["byte_level"]["tokenizer"]))
        broken["normalizer"] = {"type": "Rot13"}
        with self.assertRaisesRegex(tuff.Unsupported, "normalizer 'Rot13'.*known are BertNormalizer"):
            tuff.Tokenizer.from_json(json.dumps(broken))


class ChatTemplateTest(unittest.TestCase):
    def test_render(self):
        template = tuff.ChatTemplate("{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
                                     "{{ tools[0].name if tools }}{{ style }}{{ '>' if add_generation_prompt }}")
        messages = [{"role": "user", "content": "hé"}]
        self.assertEqual(template.render(messages, bos_token="<s>"), "<s>[user]hé>")
        self.assertEqual(template.render(messages, [{"name": "f"}], add_generation_prompt=False, style=3), "[user]héf3")
        with self.assertRaisesRegex(tuff.InvalidArgument, "line 2: users alone"):
            tuff.ChatTemplate("\n{{ raise_exception('users alone') }}").render([])


if __name__ == "__main__":
    unittest.main()
