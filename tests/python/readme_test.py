"""The Python example of README.md runs, and trains. Usage: readme_test.py README"""
import pathlib
import re
import sys
import unittest

import numpy as np

import tuff
from tuff import nn, optim


class Readme(unittest.TestCase):
    def test_example(self):
        blocks = re.findall(r"^```python\n(.*?)^```", pathlib.Path(sys.argv[1]).read_text(),
                            re.DOTALL | re.MULTILINE)
        self.assertEqual(len(blocks), 1)
        model = nn.Linear(4, 3)
        names = {"model": model, "optimizer": optim.SGD(model.parameters(), lr=0.5)}
        exec(blocks[0], names)
        self.assertEqual(names["x"].grad.shape, (2, 2))
        tuff.synchronize()
        self.assertEqual(names["array"].tolist(), [0, 2, 4, 6, 8, 10])
        x, y = np.eye(4, dtype=np.float32), np.array([0, 1, 2, 0], np.int32)
        losses = [names["step"](tuff.tensor(x), tuff.tensor(y)).item() for _ in range(30)]
        self.assertLess(losses[-1], losses[0] / 2)
        self.assertTrue(names["step"].captured)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
