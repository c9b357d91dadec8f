"""tuff.nn.init: what parameters hold afterwards, and that they are still the same parameters."""
import math
import unittest

import numpy as np

import tuff
from tuff.nn import init


class Init(unittest.TestCase):
    def drawn(self, function, *args, **kwargs):
        weight = tuff.zeros((64, 100), requires_grad=True)
        self.assertIs(function(weight, *args, **kwargs), weight)
        self.assertTrue(weight.requires_grad)
        return weight.numpy()

    def test_draws(self):
        tuff.manual_seed(2)
        for function, args, deviation, most in (
                (init.uniform_, (-1, 3), 4 / math.sqrt(12), 3), (init.normal_, (1, 2), 2, None),
                (init.trunc_normal_, (0, 1, -1, 1), 0.5396, 1),
                (init.xavier_uniform_, (), math.sqrt(2 / 164), math.sqrt(6 / 164)), (init.xavier_normal_, (2,), 2 * math.sqrt(2 / 164), None),
                (init.kaiming_uniform_, (math.sqrt(5),), 1 / math.sqrt(300), 0.1), (init.kaiming_normal_, (0, "fan_out", "relu"), math.sqrt(2 / 64), None),
                (init.kaiming_normal_, (0, "fan_in", "linear"), 0.1, None)):
            x = self.drawn(function, *args)
            self.assertAlmostEqual(x.std() / deviation, 1, delta=0.05, msg=function.__name__)
            if most:
                self.assertLessEqual(np.abs(x).max(), most * 1.00001, function.__name__)

    def test_constants(self):
        self.assertTrue((self.drawn(init.constant_, 2.5) == 2.5).all())
        self.assertTrue((self.drawn(init.ones_) == 1).all() and (self.drawn(init.zeros_) == 0).all())
        np.testing.assert_array_equal(self.drawn(init.eye_), np.eye(64, 100))
        half = tuff.ones(3, dtype="float16")
        self.assertEqual(init.normal_(half).dtype, tuff.float16)

    def test_gains(self):
        for name, gain in (("linear", 1), ("conv2d", 1), ("tanh", 5 / 3), ("relu", math.sqrt(2)), ("leaky_relu", math.sqrt(2 / 1.0001))):
            self.assertAlmostEqual(init.calculate_gain(name), gain)
        self.assertAlmostEqual(init.calculate_gain("leaky_relu", 1), 1)

    def test_what_is_refused(self):
        with self.assertRaisesRegex(tuff.InvalidArgument, '"softmax" is none of: linear'):
            init.calculate_gain("softmax")
        with self.assertRaisesRegex(tuff.InvalidArgument, 'mode "in" is none of: fan_in, fan_out'):
            init.kaiming_normal_(tuff.zeros((2, 2)), mode="in")
        with self.assertRaisesRegex(tuff.ShapeError, "is no matrix"):
            init.eye_(tuff.zeros(3))
        with self.assertRaisesRegex(tuff.ShapeError, "fewer than 2 axes"):
            init.xavier_uniform_(tuff.zeros(3))


if __name__ == "__main__":
    unittest.main()
