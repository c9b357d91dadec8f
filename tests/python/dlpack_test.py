"""DLPack's lifetimes and refusals, with NumPy and with capsules made and taken by hand. Runs once more
under the address sanitizer (asan_test.py), which fills memory that was freed."""
import ctypes
import gc
import math
import threading
import unittest
import weakref

import numpy as np

import tuff

# ---- the structs of dlpack.h, https://dmlc.github.io/dlpack/latest/c_api.html


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Legacy(ctypes.Structure):
    NAME, USED = b"dltensor", b"used_dltensor"
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", Deleter)]


class Versioned(ctypes.Structure):
    NAME, USED = b"dltensor_versioned", b"used_dltensor_versioned"
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", Deleter), ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


def function(name, result, *arguments):
    f = getattr(ctypes.pythonapi, name)
    f.restype, f.argtypes = result, arguments
    return f


new_capsule = function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
pointer_of = function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
set_name = function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
name_of = function("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)


class Producer:
    """Memory of an array, given out by hand; counts what comes back, and stays until then."""
    CODES = {"b": 6, "i": 0, "u": 1, "f": 2, "c": 5}
    given = set()

    def __init__(self, array, kind=Versioned, flags=0, version=(1, 0), **changes):
        self.array, self.deleted = array, 0
        self.shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        self.strides = (ctypes.c_int64 * max(array.ndim, 1))(*(s // array.itemsize for s in array.strides))
        self.managed = kind()
        t = self.managed.tensor
        t.data, t.device_type, t.device_id, t.ndim = array.ctypes.data, 1, 0, array.ndim
        t.code, t.bits, t.lanes = self.CODES[array.dtype.kind], array.itemsize * 8, 1
        t.shape, t.strides = self.shape, self.strides
        for name, value in changes.items():
            setattr(t, name, value)
        if kind is Versioned:
            self.managed.major, self.managed.minor = version
            self.managed.flags = flags
        self.managed.deleter = Deleter(self.take_back)
        self.kind = kind

    def take_back(self, _):
        self.deleted += 1
        Producer.given.discard(self)

    def capsule(self):
        Producer.given.add(self)
        return new_capsule(ctypes.addressof(self.managed), self.kind.NAME, None)


def take(capsule, kind):
    """As a consumer does: the struct is its own from now on, until it calls the deleter."""
    managed = kind.from_address(pointer_of(capsule, kind.NAME))
    set_name(capsule, kind.USED)
    return managed


def seen(managed):
    t = managed.tensor
    shape, strides = t.shape[:t.ndim], t.strides[:t.ndim]
    count = math.prod(shape)
    return list((ctypes.c_float * count).from_address(t.data + t.byte_offset)) if count else [], shape, strides


class watched(np.ndarray):
    """An array whose end can be seen."""


def array_of(values, dtype=np.float32):
    a = np.array(values, dtype).view(watched)
    return a, weakref.ref(a)


def settle():
    """What tuff holds is given back by the main thread, soon after the device is done."""
    tuff.synchronize()
    for _ in range(3):
        gc.collect()
        tuff.from_blob(np.zeros(1, np.float32))


class Given(unittest.TestCase):
    """tuff's memory in other hands."""

    def test_the_consumer_outlives_the_tensor(self):
        for kind, version in ((Legacy, None), (Versioned, (1, 0))):
            t = (tuff.arange(6).cast("float32").reshape(2, 3) * 2).realize()
            capsule = t.__dlpack__(max_version=version)
            managed = take(capsule, kind)
            del t, capsule
            settle()
            churn = [tuff.full((2, 3), 9.0).realize() for _ in range(8)]  # memory that was freed is used again
            self.assertEqual(seen(managed), ([0, 2, 4, 6, 8, 10], [2, 3], [3, 1]))
            ctypes.memset(managed.tensor.data, 0, 24)  # is its own to write
            del churn
            managed.deleter(ctypes.addressof(managed))

    def test_the_tensor_outlives_the_consumer(self):
        for kind, version in ((Legacy, None), (Versioned, (1, 0))):
            t = tuff.ones(5).realize()
            for _ in range(4):
                managed = take(t.__dlpack__(max_version=version), kind)
                managed.deleter(ctypes.addressof(managed))
            settle()
            self.assertEqual(t.tolist(), [1] * 5)

    def test_capsules_that_nobody_took(self):
        for version in (None, (1, 0)):
            t = tuff.ones(1000).realize()
            capsules = [t.__dlpack__(max_version=version) for _ in range(10)]
            del t
            settle()
            kind = Versioned if version else Legacy
            managed = kind.from_address(pointer_of(capsules[-1], kind.NAME))
            self.assertEqual(seen(managed)[0], [1] * 1000)
            del managed, capsules
            settle()

    def test_taken_twice(self):
        for version in (None, (1, 0)):
            capsule = tuff.ones(3).__dlpack__(max_version=version)
            t = tuff.from_dlpack(capsule)
            self.assertRaisesRegex(tuff.InvalidArgument, "taken before", tuff.from_dlpack, capsule)
            self.assertIn(b"used", name_of(capsule))
            del capsule
            settle()
            self.assertEqual(t.tolist(), [1, 1, 1])

    def test_an_assignment_leaves_the_consumer_its_memory(self):
        t = tuff.zeros(4).realize()
        a = np.from_dlpack(t)
        t.assign(t + 1).realize()
        tuff.synchronize()
        self.assertEqual(a.tolist(), [1] * 4)
        t = t.reshape(2, 2) * 3
        del t
        settle()
        self.assertEqual(a.tolist(), [1] * 4)

    def test_of_another_thread(self):
        for _ in range(20):
            t = tuff.ones(100).realize()
            managed = take(t.__dlpack__(), Legacy)
            del t
            thread = threading.Thread(target=lambda: managed.deleter(ctypes.addressof(managed)))
            thread.start()
            thread.join()
        settle()

    def test_parts_and_results_to_come(self):
        t = tuff.arange(12).reshape(3, 4)
        for given, want in [(t[1:, ::2], [[4, 6], [8, 10]]), (t.T, np.arange(12).reshape(3, 4).T.tolist()),
                            (t[:, :0], [[], [], []]), (t.sum(), 66), (t * 2 + 1, (np.arange(12) * 2 + 1).reshape(3, 4).tolist())]:
            self.assertEqual(np.from_dlpack(given).tolist(), want)

    def test_detached_is_the_same_memory(self):
        w = tuff.ones(3, requires_grad=True).realize()
        self.assertRaises(BufferError, np.from_dlpack, w)
        a = np.from_dlpack(w.detach())
        np.asarray(w.detach())[1] = 5  # what NumPy 1.24 takes as DLPack it does not write
        self.assertEqual((w.tolist(), a.tolist()), ([1, 5, 1], [1, 5, 1]))


class Taken(unittest.TestCase):
    """Other's memory in tuff's hands."""

    def test_given_back_once_when_the_last_tensor_has_gone(self):
        for kind in (Legacy, Versioned):
            p = Producer(np.arange(6, dtype=np.float32).reshape(2, 3), kind)
            capsule = p.capsule()
            t = tuff.from_dlpack(capsule)
            self.assertEqual(name_of(capsule), kind.USED)
            del capsule
            later = t * 2
            del t
            settle()
            self.assertEqual(p.deleted, 0, "what is still to be computed reads it")
            self.assertEqual(later.tolist(), [[0, 2, 4], [6, 8, 10]])
            del later
            settle()
            self.assertEqual(p.deleted, 1)

    def test_held_by_a_jit_by_a_view_and_by_what_it_was_given_to(self):
        p = Producer(np.ones((4, 4), np.float32))
        t = tuff.from_dlpack(p.capsule())
        f = tuff.jit(lambda x: x @ t)
        for _ in range(3):
            f(tuff.ones((4, 4)).realize())
        del t
        settle()
        self.assertEqual(p.deleted, 0)
        self.assertEqual(f(tuff.ones((4, 4)).realize()).tolist(), [[4] * 4] * 4)
        del f
        settle()
        self.assertEqual(p.deleted, 1)

        p = Producer(np.ones((4, 4), np.float32))
        a = np.from_dlpack(tuff.from_dlpack(p.capsule()))
        settle()
        self.assertEqual((p.deleted, a.sum()), (0, 16))
        part = a[1]
        del a
        settle()
        self.assertEqual((p.deleted, part.tolist()), (0, [1] * 4))
        del part
        settle()
        self.assertEqual(p.deleted, 1)

    def test_in_a_cycle(self):
        array, alive = array_of([1, 2, 3])
        p = Producer(array)
        t = tuff.from_dlpack(p.capsule())

        class Node:
            pass
        node = Node()
        node.tensor, node.self = t, node
        del node, t, array
        p.array = None
        self.assertIsNone(alive())  # a producer of its own: nothing but the deleter says when
        settle()
        self.assertEqual(p.deleted, 1)

        array, alive = array_of([1, 2, 3])
        array.tensor = tuff.from_dlpack(array)  # a cycle through NumPy's own capsule
        array.self = array
        del array
        settle()
        self.assertIsNotNone(alive(), "C++ holds it: a cycle that no collector of Python sees")
        alive().tensor = None
        settle()
        self.assertIsNone(alive())

    def test_let_go_by_another_thread(self):
        producers = [Producer(np.ones(64, np.float32)) for _ in range(20)]
        for p in producers:
            held = [tuff.from_dlpack(p.capsule())]
            thread = threading.Thread(target=held.clear)
            thread.start()
            thread.join()
        settle()
        self.assertEqual([p.deleted for p in producers], [1] * 20)

    def test_a_failure_takes_nothing(self):
        a = np.ones((2, 2), np.float32)
        for error, text, p in [
                (tuff.Unsupported, "device type 8", Producer(a, device_type=8)),
                (tuff.InvalidArgument, "code 5, 64 bits", Producer(a.astype(np.complex64))),
                (tuff.InvalidArgument, "4 lanes", Producer(a, lanes=4)),
                (tuff.InvalidArgument, "code 77", Producer(a, code=77)),
                (tuff.Unsupported, "version 2.1", Producer(a, version=(2, 1))),
                (tuff.InvalidArgument, "not aligned", Producer(a, data=a.ctypes.data + 1)),
                (tuff.InvalidArgument, "null pointer", Producer(a, data=None)),
                (tuff.ShapeError, "overlap", Producer(np.lib.stride_tricks.as_strided(a, (3, 2), (4, 4)))),
        ]:
            capsule = p.capsule()
            with self.assertRaisesRegex(error, text):
                tuff.from_dlpack(capsule)
            self.assertEqual(name_of(capsule), p.kind.NAME, "the capsule is still its owner's: " + text)
            settle()
            self.assertEqual(p.deleted, 0, text)
        self.assertRaises(tuff.InvalidArgument, tuff.from_dlpack, new_capsule(1, b"dltensor_of_another_kind", None))

    def test_a_minor_version_to_come_is_read(self):
        p = Producer(np.arange(3, dtype=np.float32), version=(1, 7), flags=4)
        self.assertEqual(tuff.from_dlpack(p.capsule()).tolist(), [0, 1, 2])

    def test_without_strides_and_with_an_offset(self):
        a = np.arange(8, dtype=np.float32)
        p = Producer(a[2:].reshape(2, 3), byte_offset=8, data=a.ctypes.data, strides=None)
        self.assertEqual(tuff.from_dlpack(p.capsule()).tolist(), [[2, 3, 4], [5, 6, 7]])

    def test_strided_views(self):
        a = np.arange(120, dtype=np.int32).reshape(6, 5, 4)
        for name, view in [("transposed", a.T), ("part", a[1:, ::2, 1:3]), ("reversed", a[::-1, :, ::-2]),
                           ("expanded", np.broadcast_to(a[:1], (3, 5, 4))), ("column", a[:, :, 3]), ("empty", a[:, :0]),
                           ("element", a[2, 3, 1:2].reshape(()))]:
            p = Producer(view)
            t = tuff.from_dlpack(p.capsule())
            self.assertEqual(t.tolist(), view.tolist(), name)
            a += 1
            u = tuff.from_dlpack(p.capsule()) + 0
            self.assertEqual(u.tolist(), view.tolist(), name)
            del t, u
            settle()
            self.assertEqual(p.deleted, 2)

    def test_read_only(self):
        p = Producer(np.ones(3, np.float32), flags=1)
        t = tuff.from_dlpack(p.capsule())
        self.assertRaisesRegex(tuff.InvalidArgument, "read-only", t.assign, t + 1)
        with self.assertRaisesRegex(tuff.InvalidArgument, "read-only"):
            t[0] = 2
        self.assertRaises(BufferError, np.from_dlpack, t)  # NumPy 1.24 knows no read-only capsules
        a = np.ones(3, np.float32)
        a.flags.writeable = False
        self.assertRaises(BufferError, np.from_dlpack, tuff.from_blob(a))
        self.assertFalse(np.asarray(tuff.from_blob(a)).flags.writeable)

    def test_writes_are_seen_both_ways(self):
        a = np.zeros((2, 3), np.float32)
        t = tuff.from_dlpack(a)
        a[1, 1] = 5
        self.assertEqual(t.tolist(), [[0, 0, 0], [0, 5, 0]])
        t[0] = [1, 2, 3]
        t.realize()
        tuff.synchronize()
        self.assertEqual(a.tolist(), [[1, 2, 3], [0, 5, 0]])
        b, c = np.from_dlpack(t), np.asarray(t)
        c[1] = 9  # what NumPy 1.24 takes as DLPack it does not write
        self.assertEqual((t + 0).tolist(), [[1, 2, 3], [9, 9, 9]])
        self.assertEqual((a.tolist(), b.tolist()), (c.tolist(), c.tolist()))

    def test_every_dtype_and_shape(self):
        for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
                      "float64", "bool"):
            for shape in ((), (0,), (1,), (3, 0, 2), (7, 5, 3), (1, 1, 4, 1)):
                a = (np.arange(math.prod(shape)) % 2).astype(dtype).reshape(shape)
                t = tuff.from_dlpack(Producer(a).capsule())
                self.assertEqual((t.dtype.name, t.shape), (dtype, shape))
                np.testing.assert_array_equal(t.numpy(), a)
                if dtype != "bool":  # NumPy 1.24 has none in DLPack
                    b = np.from_dlpack(tuff.tensor(a))
                    self.assertEqual((b.dtype, b.shape), (a.dtype, a.shape))
                    np.testing.assert_array_equal(b, a)


    def test_floats_of_8_bits_are_of_version_1_1(self):
        for dtype, code in ((tuff.float8_e4m3fn, 10), (tuff.float8_e5m2, 12)):
            t = tuff.tensor([1.5, -2], dtype=dtype)
            capsule = t.__dlpack__(max_version=(1, 1))
            managed = Versioned.from_address(pointer_of(capsule, Versioned.NAME))
            self.assertEqual((managed.major, managed.minor, managed.tensor.code, managed.tensor.bits), (1, 1, code, 8))
            again = tuff.from_dlpack(capsule)
            self.assertEqual((again.dtype, again.tolist()), (dtype, [1.5, -2]))
            self.assertEqual(tuff.from_dlpack(t).tolist(), [1.5, -2])
            for version in (None, (1, 0)):
                with self.assertRaisesRegex(BufferError, f"before 1.1 have no {dtype.name}.*bitcast"):
                    t.__dlpack__(max_version=version)
            del managed, capsule, again
        settle()


class Leaks(unittest.TestCase):
    def test_memory_stays_where_it_is(self):
        def resident():
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * 4096

        def rounds(n):
            for _ in range(n):
                a = np.ones(1 << 18, np.float32)
                t = tuff.from_dlpack(a)
                b = np.from_dlpack(t)
                c = tuff.full(1 << 18, 2.0).realize().__dlpack__()
                del a, t, b, c
            settle()
        rounds(30)
        before = resident()
        rounds(200)  # 400 MB
        self.assertLess(resident() - before, 64 << 20)


if __name__ == "__main__":
    unittest.main()
