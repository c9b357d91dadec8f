#!/usr/bin/env python3
"""`tuff tokenize` from outside, with a tiny tokenizer.json.

Usage: tokenize_test.py TUFF
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TUFF = None
FIXTURES = json.loads((pathlib.Path(__file__).resolve().parent.parent / "data/tokenizers.json").read_text(encoding="utf-8"))


class Tokenize(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "tokenizer.json").write_text(json.dumps(FIXTURES["byte_level"]["tokenizer"]), encoding="utf-8")
        self.case = next(c for c in FIXTURES["byte_level"]["cases"] if c["text"].startswith("über"))

    def tuff(self, code, *arguments):
        run = subprocess.run([TUFF, "tokenize", *map(str, arguments)], capture_output=True, cwd=self.folder, timeout=60,
                             check=False)
        self.assertEqual(run.returncode, code, run.stderr.decode())
        return (run.stdout if code == 0 else run.stderr).decode()

    def test_ids_and_back(self):
        ids = " ".join(map(str, self.case["ids"]))
        self.assertEqual(self.tuff(0, ".", self.case["text"], "--ids"), ids + "\n")
        (self.folder / "text").write_text(self.case["text"], encoding="utf-8")
        self.assertEqual(self.tuff(0, "tokenizer.json", "--file", "text", "--ids"), ids + "\n")
        self.assertEqual(self.tuff(0, ".", "--decode", ids), self.case["text"] + "\n")
        plain = " ".join(map(str, self.case["plain"]))
        self.assertEqual(self.tuff(0, ".", self.case["text"], "--ids", "--plain"), plain + "\n")

    def test_table_and_json(self):
        self.assertIn("Ġfox", self.tuff(0, ".", "the fox"))
        lines = [json.loads(line) for line in self.tuff(0, ".", "the fox", "--json").splitlines()]
        self.assertEqual([line["event"] for line in lines], ["token"] * (len(lines) - 1) + ["done"])
        self.assertEqual(lines[-1]["tokens"], len(lines) - 1)

    def test_errors(self):
        self.assertIn("no token's number", self.tuff(1, ".", "--decode", "1 x"))
        self.assertIn("token 99999", self.tuff(1, ".", "--decode", "99999"))
        self.assertIn("TEXT", self.tuff(2, "."))
        self.assertIn("absent", self.tuff(1, "absent", "x"))
        (self.folder / "broken.json").write_text("{]")
        self.assertIn("broken.json", self.tuff(1, "broken.json", "x"))


if __name__ == "__main__":
    TUFF = sys.argv.pop(1)
    unittest.main()
