"""What functions take as sizes, axes and lists, and what they say of what they do not take."""
import collections
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from decimal import Decimal

import numpy as np

import tuff

# Every memory that is freed is filled, so that what is used after it does not work by chance.
CHILD = dict(os.environ, PYTHONMALLOC="debug")


class Numbers:
    """A sequence that makes its items on demand."""

    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return Index(self.items[i])


class Index:
    def __init__(self, value, before=lambda: None):
        self.value, self.before = value, before

    def __index__(self):
        self.before()
        return self.value


class Watched:
    """Is not printed."""

    def __repr__(self):
        raise AssertionError("printed")


class Sequences(unittest.TestCase):
    def test_items_that_are_made_on_demand(self):
        x = tuff.arange(6.0)
        for sizes in (range(2, 4), np.array([2, 3]), Numbers(2, 3), collections.deque([2, 3]), (np.int8(2), np.uint64(3)),
                      memoryview(b"\2\3"), np.array([[2, 3]])[0, ::1], (2, np.array(3))):
            self.assertEqual(tuff.zeros(sizes).shape, (2, 3))
            self.assertEqual(x.reshape(sizes).tolist(), [[0, 1, 2], [3, 4, 5]])
            self.assertEqual(x.view(sizes).shape, (2, 3))
            self.assertEqual(tuff.ones([1, 1]).expand(sizes).shape, (2, 3))
            self.assertEqual(tuff.ones([1, 1]).repeat(sizes).shape, (2, 3))
            self.assertEqual(tuff.ones([3, 4, 5, 6]).sum(sizes).shape, (3, 4))
        y = x.reshape(2, 3)
        for axes in (range(1, -1, -1), np.array([1, 0]), Numbers(1, 0)):
            self.assertEqual(y.permute(axes).shape, (3, 2))
            self.assertEqual(y.flip(axes).tolist(), [[5, 4, 3], [2, 1, 0]])
        self.assertEqual([p.shape for p in x.split_with_sizes(np.array([2, 4]))], [(2,), (4,)])
        self.assertEqual(x.pad(range(1, 3)).shape, (9,))

    def test_extents_one_by_one(self):
        for function in (tuff.zeros, tuff.ones, tuff.empty, tuff.rand, tuff.randn):
            self.assertEqual(function(2, 3).shape, (2, 3))
            self.assertEqual(function(2, 3, 4, dtype=tuff.float64).shape, (2, 3, 4))
            self.assertEqual(function(2).shape, (2,))

    def test_functions_of_the_module(self):
        x = tuff.tensor([1.0, 4.0])
        self.assertEqual(tuff.sqrt(x).tolist(), [1, 2])
        self.assertEqual(tuff.clamp(x, 2, 3).tolist(), [2, 3])
        self.assertEqual(tuff.sum(self=x).item(), 5)
        self.assertEqual(tuff.pow(x, 2).tolist(), [1, 16])
        self.assertEqual(tuff.pow(2, x).tolist(), [2, 16])
        self.assertEqual(tuff.pow(x, x).tolist(), [1, 256])

    def test_all_names_leave_those_of_python(self):
        names = {}
        exec("from tuff import *", names)
        self.assertIs(names["exp"], tuff.exp)
        for name in ("sum", "max", "abs", "pow", "IndexError"):
            self.assertNotIn(name, names)

    def test_lists_of_numbers(self):
        self.assertEqual(tuff.tensor(range(300, 303)).tolist(), [300, 301, 302])
        self.assertEqual(tuff.tensor([np.arange(3), np.arange(3)]).tolist(), [[0, 1, 2]] * 2)
        self.assertEqual(tuff.tensor([range(2), (5, 6)]).tolist(), [[0, 1], [5, 6]])
        self.assertEqual(tuff.tensor(np.longdouble(1.5)).item(), 1.5)
        x = tuff.arange(6.0)
        self.assertEqual(x[[np.arange(2), np.arange(2)]].tolist(), [[0, 1]] * 2)
        self.assertEqual(x[range(4, 6)].tolist(), [4, 5])
        with self.assertRaises(tuff.ShapeError):
            endless = []
            endless += [endless, endless]
            tuff.tensor(endless)

    def test_what_changes_while_it_is_read(self):
        for change in (list.clear, lambda l: l.extend([1] * 1000), lambda l: l.__delitem__(1)):
            sizes = []
            sizes += [Index(2, lambda: change(sizes)), 3]
            self.assertEqual(tuff.zeros(sizes).shape, (2, 3))

    def test_freed_memory_is_not_read(self):
        done = subprocess.run([sys.executable, __file__, "Sequences.test_items_that_are_made_on_demand",
                               "Sequences.test_lists_of_numbers", "Sequences.test_what_changes_while_it_is_read"],
                              env=CHILD, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])


class Refusals(unittest.TestCase):
    def assert_says(self, error, text, function, *args, **kwargs):
        with self.assertRaises(error) as caught:
            function(*args, **kwargs)
        self.assertIs(type(caught.exception), error)
        self.assertEqual(str(caught.exception), text)

    def test_sizes(self):
        x = tuff.ones([2, 3])
        no = "has to be an int or a sequence of ints, not"
        for function in (tuff.zeros, tuff.rand, tuff.Tensor.glorot_uniform, tuff.Tensor.kaiming_normal):
            name = function.__name__
            for wrong, kind in ((tuff.tensor(6), "Tensor"), (2.5, "float"), (None, "NoneType"), ("ab", "str"), (b"ab", "bytes"),
                                (np.float32(2), "numpy.float32"), (iter([2]), "list_iterator"), ({2: 3}, "dict")):
                self.assert_says(TypeError, f"{name}(): sizes {no} {kind}", function, wrong)
            self.assert_says(TypeError, f"{name}(): sizes[1] has to be an int, not float", function, [2, 2.5])
            self.assert_says(TypeError, f"{name}(): sizes[0] has to be an int, not Tensor", function, tuff.tensor([2.0, 3.0]))
            self.assert_says(OverflowError, f"{name}(): sizes[0] is 9223372036854775808, which is out of range", function, [2 ** 63])
        for name, argument in (("layernorm", "normalized"), ("rms_norm", "normalized"), ("split_with_sizes", "sizes")):
            self.assert_says(TypeError, f"{name}(): {argument} {no} Tensor", getattr(x, name), tuff.tensor(6))
        self.assert_says(TypeError, "reshape(): argument 1 has to be an int, not float", x.reshape, 2, 3.0)
        self.assert_says(TypeError, "permute(): argument 0 has to be an int, not NoneType", x.permute, None)

    def test_others(self):
        x = tuff.ones([2, 3])
        self.assert_says(TypeError, "sum(): dims has to be an int or a sequence of ints or None, not str", x.sum, "a")
        self.assert_says(TypeError, "sum(): dims has to be an int or a sequence of ints or None, not decimal.Decimal", x.sum, Decimal(1))
        self.assert_says(TypeError, "sum(): dims has to be an int or a sequence of ints or None, not Tensor", x.sum, tuff.tensor(1.0))
        self.assert_says(TypeError, "zeros(): the argument 'sizes' is missing", tuff.zeros)
        self.assert_says(TypeError, "full(): takes 2 positional arguments, 3 were given", tuff.full, 2, 3, 4)
        self.assert_says(TypeError, "zeros(): second has to be an int, not float", tuff.zeros, 2, 3.0)
        self.assert_says(TypeError, "zeros(): has no argument 'foo'", tuff.zeros, 2, foo=3)
        self.assert_says(TypeError, "exp(): the argument 'self' is missing", tuff.exp)
        self.assert_says(TypeError, "clamp(): the argument 'self' is missing", tuff.clamp, min=2)
        self.assert_says(TypeError, "exp(): self has to be a Tensor, not NoneType", tuff.exp, None)
        self.assert_says(TypeError, "exp(): self has to be a Tensor, not int", tuff.exp, 3)
        self.assert_says(TypeError, "matmul(): other has to be a Tensor, not numpy.ndarray", x.matmul, np.ones(3))
        self.assert_says(TypeError, "where(): y has to be a Tensor or a number, not str", tuff.where, x > 1, 3, "a")
        self.assert_says(TypeError, "cat(): tensors[1] has to be a Tensor, not int", tuff.cat, [x, 3])
        for function in (tuff.block_diag, tuff.broadcast_tensors, tuff.cartesian_prod):
            self.assert_says(TypeError, f"{function.__name__}(): argument 1 has to be a Tensor, not numpy.ndarray", function, x, np.ones(3))
        self.assert_says(TypeError, "conv2d(): stride has to be an int or a sequence of ints, not str", x.conv2d, x, stride="a")
        self.assert_says(TypeError, "Linear(): in_features has to be an int, not str", tuff.nn.Linear, "a", 3)
        self.assert_says(TypeError, "Linear(): x has to be a Tensor, not list", tuff.nn.Linear(2, 3), [1.0])
        self.assert_says(TypeError, "SGD(): params[0] has to be a Tensor or a dict, not int", tuff.optim.SGD, [3])
        self.assert_says(TypeError, "save(): tensors['a'] has to be a Tensor, not int", tuff.save, "a.npz", {"a": 3})
        self.assert_says(TypeError, "grad(): grad has to be a Tensor or None, not int", setattr, x, "grad", 3)
        self.assert_says(TypeError, '"a" has to be a Tensor, not int', tuff.nn.load_state_dict, {"a": x}, {"a": 3})
        self.assert_says(OverflowError, "manual_seed(): -1 is out of range", tuff.manual_seed, -1)
        self.assertRaises(ValueError, tuff.zeros, 2, dtype="\ud800")
        self.assertRaises(TypeError, lambda: x + "a")
        self.assertRaises(tuff.InvalidArgument, tuff.zeros, range(10 ** 12))

    def test_nothing_is_computed_or_printed(self):
        x = tuff.ones([4]) * 3
        for call in (lambda: x.matmul(3), lambda: tuff.zeros(x), lambda: x.sum(x), lambda: x.layernorm(x + 1), lambda: tuff.cat(x, x),
                     lambda: x.where(x, Watched()), lambda: tuff.full([2], x), lambda: x.conv2d(x, x, x)):
            self.assertRaises(TypeError, call)
        self.assertFalse(x.is_realized())

    def test_docstrings_are_those_of_what_is_taken(self):
        self.assertTrue(tuff.full.__doc__.startswith("full(sizes: Sequence[int], value"), tuff.full.__doc__)
        self.assertNotIn("args", tuff.Tensor.sum.__doc__)


class Devices(unittest.TestCase):
    def test_random_numbers_in_a_file_are_refused_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            for draw in (tuff.rand, tuff.randn):
                self.assertRaises(tuff.Unsupported, draw, [3], device=f"DISK:{folder}/numbers")
        self.assertEqual((tuff.ones(3) + 1).tolist(), [2, 2, 2])  # what follows is computed


class Positions(unittest.TestCase):
    def test_an_index_error_is_both(self):
        self.assertEqual(tuff.IndexError.__bases__, (tuff.InvalidArgument, IndexError))
        with self.assertRaises(tuff.IndexError) as caught:
            tuff.ones(2)[2 ** 70]
        self.assertIsInstance(caught.exception, IndexError)
        self.assertIsInstance(caught.exception, ValueError)
        with self.assertRaises(IndexError):
            tuff.ones([2, 3]).index_select(0, tuff.tensor([0, 5])).tolist()


class Values(unittest.TestCase):
    def test_dtypes_are_compared_with_anything(self):
        for other in ("foo", None, 3, np.ndarray, object(), tuff.int32, "int32", np.int32):
            self.assertFalse(tuff.float32 == other)
            self.assertTrue(tuff.float32 != other)
        for same in (tuff.float32, "float32", np.float32, np.dtype("f4"), float):
            self.assertTrue(tuff.float32 == same)

    def test_int_of_a_bool(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertIs(type(int(tuff.tensor(True))), int)
            self.assertEqual(int(tuff.tensor(True)), 1)


if __name__ == "__main__":
    unittest.main()
