"""Random calls of everything that the module has, with every kind of argument that Python has. Nothing
may come out of a call but tuff's own errors and those that Python's functions have for bad arguments:
no crash, no hang, no SystemError, no text of pybind11.

Usage: fuzz_test.py [--calls N] [--seed S] [--seconds S] [--only INDEX] [--child-prefix "ENV=VALUE ..."]
Calls run in batches, each in a process of its own: the call that broke it is named, with the arguments
that repeat it alone.
"""
import argparse
import array
import collections
import ctypes
import decimal
import enum
import faulthandler
import fractions
import gc
import inspect
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings

BATCH = 250
PATIENCE_S = 60  # of one call
MEMORY = 4 << 30  # what is larger is refused; filling it would take the time of all calls
OF_PYBIND = re.compile("incompatible (function|constructor) arguments|Unable to c|Exception escaped")


class Refused(Exception):
    """What hostile objects raise: it may come through."""


# ---- arguments


class Index:
    def __init__(self, value, before=lambda: None):
        self.value, self.before = value, before

    def __index__(self):
        self.before()
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


class Sequence:
    def __init__(self, make, length):
        self.make, self.length = make, length

    def __len__(self):
        if isinstance(self.length, Exception):
            raise self.length
        return self.length

    def __getitem__(self, i):
        if isinstance(i, int) and i >= 5:
            raise IndexError(i)
        return self.make(i)


class Shrinking(collections.UserList):
    def __getitem__(self, i):
        item = self.data[i]
        if self.data:
            self.data.pop()
        return item


class IntArray(int):
    pass


class Text(str):
    pass


class Pair(tuple):
    def __getitem__(self, i):
        return 10 ** 6


class Colour(enum.IntEnum):
    RED = 2


Named = collections.namedtuple("Named", "h w")


class Arrays:
    """Only says that it is an array."""

    def __init__(self, what):
        self.what = what

    def __array__(self, dtype=None, copy=None):
        if isinstance(self.what, Exception):
            raise self.what
        return self.what


class Dlpack:
    def __init__(self, what):
        self.what = what

    def __dlpack__(self, **kwargs):
        if isinstance(self.what, Exception):
            raise self.what
        return self.what

    def __dlpack_device__(self):
        return (1, 0) if not isinstance(self.what, tuple) else self.what


class Loud:
    """An object that refuses to be looked at."""

    def __repr__(self):
        raise Refused("repr")

    def __eq__(self, other):
        raise Refused("eq")

    def __getattr__(self, name):
        raise Refused(name)

    __hash__ = None
    __bool__ = __len__ = __float__ = __index__ = lambda self: (_ for _ in ()).throw(Refused("number"))


class Cleared(list):
    """A list whose first element clears it when it is read."""

    def __init__(self, items):
        super().__init__([Index(2, self.clear), *items])


class Grown(list):
    def __init__(self, items):
        super().__init__([Index(2, lambda: self.extend([1] * 1000)), *items])


NUMBERS = [0, 1, 2, 3, -1, -2, 7, 64, 1000, 2 ** 31 - 1, 2 ** 31, -2 ** 31, 2 ** 32, 2 ** 53 + 1, 2 ** 63 - 1, 2 ** 63,
           -2 ** 63, -2 ** 63 - 1, 2 ** 64 - 1, 2 ** 64, 10 ** 30, -10 ** 400, True, False, 0.0, -0.0, 0.5, 1.5, -2.25,
           1e-320, 1e38, 1e308, float("nan"), float("inf"), -float("inf"), 1j]
TEXTS = ["", "float32", "int64", "bool", "mean", "sum", "none", "tanh", "foo", "CPU", "cpu", "CPU:1", "\ud800", "a\0b",
         "x" * 3000, "ij,jk->ik", "ii->", "DISK:none", "…", "one.npy", "none.npy", "one.safetensors", "%n{}"]
DTYPES = ["?", "b", "B", "h", "H", "i", "I", "l", "L", "e", "f", "d", "g", "F", "D", "U3", "S3", "O", "M8[ns]", "m8[s]",
          ">i4", ">f8", "V4"]


def arrays(r, np):
    dtype = np.dtype(r.choice(DTYPES + [[("a", "i4"), ("b", "f4")]]) if r.random() < 0.9 else "f4")
    shape = r.choice([(), (0,), (1,), (2,), (3,), (2, 3), (3, 2), (0, 3), (2, 1, 3), (1,) * 6])
    a = np.zeros(shape, dtype)
    if dtype.kind in "biufc" and r.random() < 0.7:
        a = np.asarray(np.random.RandomState(r.randrange(100)).randint(0, 4, shape)).astype(dtype)
    way = r.randrange(8)
    if way == 0 and a.ndim:
        a = a[::-1]
    elif way == 1:
        a = a.T
    elif way == 2:
        a.flags.writeable = False
    elif way == 3 and a.ndim == 2:
        a = np.matrix(a) if dtype.kind in "iuf" else a
    elif way == 4 and dtype.kind in "iuf":
        a = np.ma.masked_array(a, mask=r.random() < 0.5)
    elif way == 5 and a.size:
        return a.flat[0]
    elif way == 6 and dtype == object and a.ndim == 0:
        a[()] = a
    return a


def tensors(r, tuff):
    shape = r.choice([(), (), (1,), (2,), (3,), (2, 3), (2, 3), (3, 2), (2, 2), (0,), (0, 3), (2, 1, 3), (1, 2, 4, 4), (1, 0)])
    kind = r.choice([tuff.float32] * 6 + [tuff.float64, tuff.float16, tuff.bfloat16, tuff.int32, tuff.int32, tuff.int64,
                                          tuff.uint8, tuff.uint64, tuff.bool_])
    way = r.randrange(8)
    if way == 0 and kind.is_float:
        return tuff.rand(shape, dtype=kind, requires_grad=r.random() < 0.3)
    if way == 1:
        return tuff.zeros(shape, dtype=kind).realize()
    if way == 2 and len(shape) == 2:
        return tuff.ones(shape, dtype=kind).T
    if way == 3:
        return tuff.ones(shape, dtype=kind).expand(*shape)
    if way == 4:
        return tuff.zeros([2 ** 20, 2 ** 20], dtype=kind)[:2, :3]
    return tuff.full(shape, r.choice([0, 1, 2]), dtype=kind)


def itself():
    a = []
    a += [a, a]
    return a


def deep():
    a = 1
    for _ in range(3000):
        a = [a]
    return a


def changing(r):
    return r.choice([lambda: Cleared([2, 3]), lambda: Grown([2]), lambda: Shrinking([2, 3, 1, 2]),
                     lambda: Sequence(lambda i: Index(i + 1), 2), lambda: Sequence(lambda i: i, 7),
                     lambda: Sequence(lambda i: (_ for _ in ()).throw(Refused("item")), 2),
                     lambda: Sequence(lambda i: i, Refused("len")), lambda: Sequence(lambda i: i, 2 ** 40),
                     lambda: Sequence(lambda i: Sequence(lambda j: float(j), 3), 2),
                     lambda: Index(2), lambda: Index(Refused("index")), lambda: Index(1.5), lambda: Index("a"),
                     lambda: [Index(Refused("index"))], lambda: (Index(2), Index(3)), Loud, lambda: [Loud()]])()


def odd(r, tuff, np):
    return r.choice([
        lambda: None, lambda: ..., lambda: NotImplemented, object, lambda: int, lambda: float, lambda: np.float32,
        lambda: np.ndarray, lambda: tuff.Tensor, lambda: np.dtype("f4"), lambda: np.dtype("U3"), lambda: len, lambda: (lambda *a: a),
        lambda: (i for i in (2, 3)), lambda: iter([2, 3]), lambda: range(3), lambda: range(2, 4), lambda: range(0),
        lambda: range(10 ** 12), lambda: {}, lambda: {"a": 1}, lambda: {1: tuff.ones(2)}, lambda: {"a": tuff.ones(2)}, lambda: {2, 3},
        lambda: {2: 3}.keys(), lambda: slice(None), lambda: slice(2, 1, -1), lambda: slice(2 ** 70, None, 2 ** 63),
        lambda: slice("a", 1.5), lambda: decimal.Decimal("1.5"), lambda: fractions.Fraction(3, 2), lambda: IntArray(2),
        lambda: Text("float32"), lambda: Colour.RED, lambda: Named(1, 2), lambda: Pair((2, 3)), lambda: b"ab", lambda: b"",
        lambda: bytearray(b"abcd"), lambda: memoryview(b"abcdefgh"), lambda: memoryview(b"abcdefgh")[::2],
        lambda: memoryview(bytearray(8)).cast("d"), lambda: memoryview(bytearray(8)).cast("c"), lambda: array.array("i", [2, 3]),
        lambda: array.array("u", "ab"), lambda: (ctypes.c_int * 3)(1, 2, 3), lambda: (ctypes.c_float * 2 * 3)(), itself, deep,
        lambda: [[1, 2], [3]], lambda: [[1, 2], 3], lambda: [], lambda: [[]], lambda: [None], lambda: ["a"], lambda: [1.5, 2],
        lambda: [True, False], lambda: (True, [0]), lambda: Arrays(np.ones(2)), lambda: Arrays(Refused("array")),
        lambda: Dlpack(Refused("dlpack")), lambda: Dlpack(3), lambda: Dlpack((2, 0)), lambda: Dlpack(np.ones(2).__dlpack__()),
        lambda: np.random.RandomState, lambda: pathlib.Path("one.npy"), lambda: tuff.TensorDict({"a": tuff.ones(2)}),
        lambda: tuff.nn.Linear(2, 3), lambda: tuff.optim.SGD([tuff.ones(2, requires_grad=True)]), lambda: tuff.DynamicAxis(0, 0, "n", 1, 4), lambda: tuff,
        lambda: datetime_of(), lambda: Exception("x"), lambda: type("numpy", (), {"__module__": "numpy", "itemsize": 3, "kind": 4, "name": 5})(),
    ])()


def datetime_of():
    import datetime
    return datetime.datetime(2020, 1, 1)


def sizes(r, np):
    n = r.randrange(4)
    values = [r.choice([0, 1, 2, 3, 4, 6, -1, -1] if r.random() < 0.9 else NUMBERS) for _ in range(n)]
    way = r.randrange(6)
    if way == 0 and all(abs(v) < 2 ** 31 for v in values if isinstance(v, int)):
        return np.array(values, r.choice(["i4", "i8", "u1", "f4"])) if all(isinstance(v, int) and 0 <= v < 200 for v in values) else values
    return [tuple, list, tuple, list, lambda v: [np.int64(x) if isinstance(x, int) and abs(x) < 2 ** 31 else x for x in v],
            collections.deque][way](values)


def anything(r, tuff, np):
    way = r.random()
    if way < 0.2:
        return r.choice(NUMBERS)
    if way < 0.27:
        return r.choice(TEXTS)
    if way < 0.4:
        return arrays(r, np)
    if way < 0.55:
        return tensors(r, tuff)
    if way < 0.65:
        return sizes(r, np)
    if way < 0.7:
        return [tensors(r, tuff) for _ in range(r.randrange(4))]
    if way < 0.8:
        return changing(r)
    if way < 0.85:
        return [anything(r, tuff, np) for _ in range(r.randrange(3))]
    return odd(r, tuff, np)


def fitting(r, kind, tuff, np):
    """A value of the type that a signature has for a parameter, more or less."""
    if kind.startswith("Optional["):
        return None if r.random() < 0.3 else fitting(r, kind[9:-1], tuff, np)
    if kind.startswith("List[tuff._tuff.Tensor"):
        t = tensors(r, tuff)
        return r.choice([[t], [t, t], (t, tensors(r, tuff)), t, []])
    if kind in ("int", "float", "int | float"):
        return r.choice([0, 1, 2, -1, 3, 1.5] if r.random() < 0.8 else NUMBERS)
    if kind == "bool":
        return r.choice([True, False])
    if kind == "str":
        return r.choice(TEXTS)
    if kind == "DType":
        return r.choice(["float32", tuff.int32, tuff.float64, np.float32, bool, np.dtype("u1"), "foo"])
    if "Sequence[int]" in kind or "uple" in kind or kind == "List[int]":
        return sizes(r, np)
    if kind == "dict":
        return {"a": tensors(r, tuff)}
    if kind == "os.PathLike":
        return r.choice(["one.npy", pathlib.Path("one.npy"), b"one.npz", "a\0b", "none/none.npy", "out.npz", "out.npy", "out.safetensors"])
    if kind.endswith(".Tensor"):
        return tensors(r, tuff)
    return anything(r, tuff, np)


# ---- calls

# Not what is to be tested, and what takes long by design.
LEFT_OUT = {"draw", "__class__", "__init_subclass__", "__subclasshook__", "__new__", "__getattribute__", "__setattr__",
            "__delattr__", "__dir__", "__sizeof__", "__reduce_ex__", "__getstate__", "JitCore", "__dict__", "__weakref__"}


def members(cls):
    for name, member in inspect.getmembers_static(cls):
        if name not in LEFT_OUT and not name.startswith("__pybind11"):
            yield name, member


def targets(tuff):
    """(name, what it is, the function that is called, its parameters' types)"""
    found = []
    for module in (tuff, tuff.nn, tuff.optim, tuff.digits):
        for name, value in sorted(vars(module).items()):
            if name.startswith("_") or name in LEFT_OUT or inspect.ismodule(value):
                continue
            if isinstance(value, type):
                if not issubclass(value, BaseException):
                    found.append((f"{module.__name__}.{name}", "new", value, kinds_of(value.__init__)))
            elif callable(value):
                found.append((f"{module.__name__}.{name}", "function", value, kinds_of(value)))
    for name, member in members(tuff.Tensor):
        if isinstance(member, property):
            found.append((f"Tensor.{name}", "property", member, [["tuff._tuff.Tensor"]]))
        elif isinstance(member, staticmethod):
            found.append((f"Tensor.{name}", "function", getattr(tuff.Tensor, name), kinds_of(member.__func__)))
        elif callable(member) or type(member).__name__ == "instancemethod":
            found.append((f"Tensor.{name}", "method", name, kinds_of(member)))
    for name in ("__getitem__", "__setitem__", "reshape", "expand", "tensor"):  # which take much
        found += [t for t in found if t[0].endswith(f".{name}")] * 8
    return found


def kinds_of(function):
    """Of each signature the types of its parameters by name."""
    found = []
    for line in (getattr(function, "__doc__", "") or "").splitlines():
        m = re.match(r"(?:\d+\. )?\w+\((.*)\) -> ", line)
        if m:
            found.append(re.findall(r"(\w+): ((?:[^,\[=]|\[[^\]]*\])+?)(?: = [^,]*)?(?:, |$)", m.group(1)))
    return found or [[]]


def value_for(r, kind, tuff, np):
    return fitting(r, kind, tuff, np) if r.random() < 0.65 else anything(r, tuff, np)


def arguments(r, kinds, tuff, np):
    parameters = [p for p in r.choice(kinds) if isinstance(p, tuple) and p[0] != "self"]
    args, kwargs = [], {}
    if not parameters:
        args = [value_for(r, "Sequence[int]", tuff, np) for _ in range(r.randrange(4))]
    by_name = False
    for name, kind in parameters:
        if r.random() < 0.2:
            by_name = True
            if r.random() < 0.7:
                continue
        if by_name or name in ("dtype", "device", "requires_grad"):
            if name in ("dtype", "device", "requires_grad") and r.random() < 0.6:
                continue
            kwargs[name] = value_for(r, kind.strip(), tuff, np)
        else:
            args.append(value_for(r, kind.strip(), tuff, np))
    if r.random() < 0.03:
        args.append(anything(r, tuff, np))
    if r.random() < 0.02:
        kwargs[r.choice(["foo", "x", "", "dtype", "sizes"])] = anything(r, tuff, np)
    return args, kwargs


def shown(value, depth=0):
    """For people, without computing tensors or calling hostile objects."""
    kind = type(value)
    if kind.__name__ == "Tensor":
        return f"Tensor({tuple(value.shape)}, {value.dtype.name})"
    if kind.__name__ == "ndarray":
        return f"array({value.dtype.str}, {value.shape})"
    if kind in (list, tuple, dict) and depth < 4:
        items = [f"{k!r}: {shown(v, depth + 1)}" for k, v in value.items()] if kind is dict else [shown(v, depth + 1) for v in value]
        return f"{kind.__name__}({', '.join(items[:8])})"
    if kind in (int, float, bool, str, bytes, type(None), type(...), complex, slice, range):
        try:
            text = ascii(value)
        except Exception:
            text = kind.__name__
        return text if len(text) < 80 else text[:77] + "..."
    return f"<{kind.__module__}.{kind.__qualname__}>"


class Call:
    def __init__(self, r, found, tuff, np):
        self.name, self.what, self.target, kinds = r.choice(found)
        self.args, self.kwargs = arguments(r, kinds, tuff, np)
        self.x = tensors(r, tuff) if self.what in ("method", "property") else None
        self.r, self.tuff = r, tuff

    def __str__(self):
        text = ", ".join([shown(a) for a in self.args] + [f"{k}={shown(v)}" for k, v in self.kwargs.items()])
        return f"{self.name} on {shown(self.x)} with ({text})"

    def __call__(self):
        if self.what == "property":
            if self.args and self.r.random() < 0.5:
                return setattr(self.x, self.name.split(".")[1], self.args[0])
            return getattr(self.x, self.name.split(".")[1])
        target = getattr(self.x, self.target) if self.what == "method" else self.target
        return target(*self.args, **self.kwargs)


def use(r, result, tuff):
    """What a caller may do with a result; little of it, as every new kernel is compiled."""
    if isinstance(result, (list, tuple)):
        result = result[0] if result else None
    if not isinstance(result, tuff.Tensor):
        return
    result.shape, result.dtype, result.device
    count = 1
    for s in result.shape:
        count *= s
    if count <= 100 and r.random() < 0.04 and result.device == "CPU":
        r.choice([lambda: result.tolist(), lambda: repr(result), lambda: result.realize(),
                  lambda: result.sum().backward(), lambda: memoryview(result)])()


def allowed(error, tuff):
    if isinstance(error, (tuff.InternalError, AssertionError)):
        return False
    kinds = (tuff.Error, TypeError, ValueError, IndexError, MemoryError, OverflowError, BufferError, Refused, KeyError,
             AttributeError, RecursionError, FileNotFoundError)
    return isinstance(error, kinds) and not OF_PYBIND.search(str(error))


def note(log, text):
    data = f"{text}\n".encode("ascii", "replace")
    if log == 2:
        os.write(2, data)
    else:
        os.ftruncate(log, 0)
        os.pwrite(log, data, 0)


def child(seed, first, count):
    import numpy as np
    import tuff
    warnings.simplefilter("ignore")
    if not os.environ.get("LD_PRELOAD"):  # the address sanitizer maps terabytes
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    folder = tempfile.TemporaryDirectory(prefix="tuff-fuzz-")
    os.chdir(folder.name)
    np.save("one.npy", np.ones((2, 3), np.float32))
    tuff.save("one.safetensors", {"a": tuff.ones(2)})
    found = targets(tuff)
    log = os.open(os.environ["TUFF_TEST_FUZZ_CALL"], os.O_RDWR | os.O_CREAT) if "TUFF_TEST_FUZZ_CALL" in os.environ else 2
    outcomes = collections.Counter()
    for index in range(first, first + count):
        r = random.Random(f"{seed}/{index}")
        faulthandler.dump_traceback_later(PATIENCE_S, exit=True)
        note(log, f"call {index}: its arguments")
        call = Call(r, found, tuff, np)
        note(log, f"call {index}: {call}")
        try:
            use(r, call(), tuff)
            outcomes["done"] += 1
        except BaseException as error:
            if not allowed(error, tuff):
                sys.stderr.write(f"{type(error).__mro__}: {str(error)[:2000]}\n")
                os._exit(3)
            outcomes[type(error).__name__] += 1
            del error
        del call
        if index % 50 == 0:
            gc.collect()
    faulthandler.cancel_dump_traceback_later()
    os.chdir("/")
    print(" ".join(f"{k}={v}" for k, v in sorted(outcomes.items())))


def run(options):
    began, index, total, bad = time.monotonic(), options.first, collections.Counter(), 0
    note = tempfile.NamedTemporaryFile(prefix="tuff-fuzz-call-")
    while index < options.first + options.calls and (options.seconds is None or time.monotonic() - began < options.seconds):
        count = min(options.batch, options.first + options.calls - index)
        # Set for the calls alone: the sanitizer's libraries are not for this process.
        environment = dict(os.environ, TUFF_TEST_FUZZ_CALL=note.name, **dict(e.split("=", 1) for e in options.child_environment))
        os.truncate(note.name, 0)
        command = [sys.executable, "-X", "faulthandler", __file__, "--child", str(index), str(count), "--seed", str(options.seed)]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace",
                                  timeout=PATIENCE_S * 20)
            code, text = done.returncode, done.stderr
        except subprocess.TimeoutExpired as e:
            code, text = "hung", str(e.stderr)
        if code == 0:
            for word in done.stdout.split():
                name, _, n = word.partition("=")
                total[name] += int(n)
            index += count
            print(f"{index - options.first} calls, {time.monotonic() - began:.0f} s: {dict(total)}", flush=True)
            continue
        call = pathlib.Path(note.name).read_text()
        print(f"BROKEN ({code}) {call}{text[-6000:]}\nagain: {__file__} --seed {options.seed} --only N\n", flush=True)
        bad += 1
        broken = re.match(r"call (\d+)", call)
        if not broken or bad > options.findings:
            break
        index = int(broken.group(1)) + 1
    if not total["done"]:
        bad += 1
    print(f"seed {options.seed}: {sum(total.values())} calls, {bad} findings")
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=50_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--findings", type=int, default=0, help="go on after so many")
    parser.add_argument("--only", type=int)
    parser.add_argument("--child", type=int, nargs=2)
    parser.add_argument("--child-environment", nargs="*", default=[])
    options = parser.parse_args()
    if options.child:
        return child(options.seed, *options.child)
    if options.only is not None:
        return child(options.seed, options.only, 1)
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
