"""Every Python example of the documents runs, and the guide's trains. Usage: readme_test.py DOCUMENT..."""
import os
import pathlib
import re
import sys
import tempfile
import unittest

import numpy as np

import onnx_writer
import tuff
from tuff import nn, optim

DOCUMENTS = [pathlib.Path(name).resolve() for name in sys.argv[1:]]


def examples(document):
    """(first line, text) of every fenced block of Python."""
    text = document.read_text(encoding="utf-8")
    return [(text.count("\n", 0, m.start(1)) + 1, m.group(1))
            for m in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)]


def run(document, line, example):
    """The names that an example leaves; it may use what the text around it speaks of."""
    model = nn.Linear(4, 3)
    names = {"np": np, "tuff": tuff, "model": model, "optimizer": optim.SGD(model.parameters(), lr=0.5)}
    # Empty lines in front, so that a traceback has the document's line numbers.
    exec(compile("\n" * (line - 1) + example, str(document), "exec"), names)
    tuff.synchronize()
    return names


class Readme(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # for the files that examples write
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        pathlib.Path("model.onnx").write_bytes(onnx_writer.perceptron())

    def test_every_example_runs(self):
        found = [(d, line, text) for d in DOCUMENTS for line, text in examples(d)]
        self.assertGreaterEqual(len(found), 1)
        for document, line, text in found:
            with self.subTest(document=document.name, line=line):
                run(document, line, text)

    def test_the_example_of_the_guide_trains(self):
        guide = [d for d in DOCUMENTS if d.match("guide/python.md")]
        self.assertEqual(len(guide), 1)
        names = run(guide[0], *examples(guide[0])[0])
        self.assertEqual(names["x"].grad.shape, (2, 2))
        self.assertEqual(names["array"].tolist(), [0, 2, 4, 6, 8, 10])
        x, y = np.eye(4, dtype=np.float32), np.array([0, 1, 2, 0], np.int32)
        losses = [names["step"](tuff.tensor(x), tuff.tensor(y)).item() for _ in range(30)]
        self.assertLess(losses[-1], losses[0] / 2)
        self.assertTrue(names["step"].captured)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
