"""Memory shared with NumPy: buffers, from_blob and DLPack; who holds it and for how long.
Usage: sharing_test.py EXAMPLE"""
import array
import ctypes
import gc
import importlib.util
import math
import os
import pathlib
import subprocess
import sys
import threading
import unittest
import weakref

import numpy as np

import tuff


class Array(np.ndarray):
    """An array that can be watched."""


def watched(values, dtype=np.float32):
    a = np.array(values, dtype).view(Array)
    return a, weakref.ref(a)


def settle():
    """What the device has finished with goes back, and the interpreter has a moment for it."""
    tuff.synchronize("CPU")
    gc.collect()
    for _ in range(100):
        pass


class FromBlob(unittest.TestCase):
    def test_writes_are_seen_on_both_sides(self):
        a = np.arange(6, dtype=np.float32).reshape(2, 3)
        t = tuff.from_blob(a)
        self.assertEqual(t.data_ptr(), a.ctypes.data)
        a[1, 2] = 50
        self.assertEqual((t * 2).tolist(), [[0, 2, 4], [6, 8, 100]])
        t.assign(t + 1).realize()
        tuff.synchronize()
        self.assertEqual(a.tolist(), [[1, 2, 3], [4, 5, 51]])
        t.copy_from(np.full((2, 3), 7, np.float32))
        self.assertEqual(a.tolist(), [[7] * 3] * 2)

    def test_layouts(self):
        base = np.arange(120, dtype=np.int16).reshape(4, 5, 6)
        for view in (base, base.T, base[::-1], base[1:3, ::2, ::-3], base[:, 1], base[..., None],
                     np.broadcast_to(base[0, 0], (3, 6)), base[2:2], base[1, 2, 3:4], base[0, 0, 0:0],
                     np.array(7, np.int16), base.transpose(1, 2, 0)[:, ::-1]):
            t = tuff.from_blob(view)
            self.assertEqual(t.shape, view.shape)
            np.testing.assert_array_equal(t.numpy(), view)
            np.testing.assert_array_equal((t + t).numpy(), view * 2)

    def test_other_memory(self):
        self.assertEqual(tuff.from_blob(bytearray(b"\1\2")).tolist(), [1, 2])
        self.assertEqual(tuff.from_blob(array.array("d", [1, 2.5])).tolist(), [1, 2.5])
        self.assertEqual(tuff.from_blob(array.array("l", [-1])).dtype, tuff.int64)
        self.assertEqual(tuff.from_blob((ctypes.c_int * 3)(1, 2, 3)).tolist(), [1, 2, 3])
        self.assertEqual(tuff.from_blob(memoryview(np.eye(2, dtype="f"))).tolist(), [[1, 0], [0, 1]])

    def test_read_only(self):
        for data in (b"\1\2", np.broadcast_to(np.float32(3), (2,))):
            t = tuff.from_blob(data)
            if t.is_realized():
                self.assertRaisesRegex(ValueError, "read-only", t.assign, t + t)
                self.assertTrue(memoryview(t).readonly)
                self.assertRaises(BufferError, t.__dlpack__)
                self.assertFalse(t.numpy().flags.writeable)

    def test_refused(self):
        unaligned = np.frombuffer(bytearray(9), np.uint8)[1:].view(np.float32)
        overlapping = np.lib.stride_tricks.as_strided(np.zeros(4, "f"), (3, 2), (4, 4))
        for data, error in ((unaligned, tuff.InvalidArgument), (overlapping, tuff.ShapeError),
                            (np.zeros(2, ">f4"), tuff.InvalidArgument), ([1, 2], TypeError),
                            (np.zeros(2, "c16"), tuff.InvalidArgument), (3, TypeError),
                            (np.zeros(2, "i4,f4")["f1"][:1].repeat(2)[::-1].astype("U1"),
                             tuff.InvalidArgument)):
            with self.subTest(repr(data)), self.assertRaises(error):
                tuff.from_blob(data)
        np.testing.assert_array_equal(tuff.tensor(unaligned).numpy(), [0, 0])
        np.testing.assert_array_equal(tuff.tensor(overlapping).numpy(), overlapping)

    def test_memory_is_held_and_let_go(self):
        a, alive = watched([1, 2, 3])
        t = tuff.from_blob(a)
        del a
        self.assertIsNotNone(alive())
        pending = t.reshape(3, 1) + 1
        del t
        settle()
        self.assertIsNotNone(alive(), "a graph that nobody realized still reads it")
        self.assertEqual(pending.tolist(), [[2], [3], [4]])
        settle()
        self.assertIsNone(alive())

    def test_a_captured_graph_holds_memory(self):
        a, alive = watched([1, 2, 3])
        t = tuff.from_blob(a)
        add = tuff.jit(lambda x: x + t)
        x = tuff.ones(3).realize()
        for i in range(4):
            a[0] = i
            self.assertEqual(add(x).tolist(), [i + 1, 3, 4])
        del a, t
        settle()
        self.assertIsNotNone(alive())
        del add
        settle()
        self.assertIsNone(alive())

    def test_many_at_once(self):
        arrays = [watched(np.arange(10)) for _ in range(200)]
        alive = [w for _, w in arrays]
        tensors = [tuff.from_blob(a) for a, _ in arrays]
        total = sum(tensors[1:], tensors[0]) if len(tensors) < 20 else tuff.stack(tensors).sum(0)
        del tensors, arrays
        self.assertEqual(total.tolist(), [200 * i for i in range(10)])
        settle()
        self.assertEqual(sum(w() is not None for w in alive), 0)

    def test_threads(self):
        failures = []

        def work(k):
            for i in range(50):
                t = tuff.from_blob(np.full(100, k, np.float32))
                if (t + i).sum().item() != 100 * (k + i):
                    failures.append((k, i))
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])


class Exported(unittest.TestCase):
    def test_arrays_share_memory(self):
        t = tuff.arange(6, dtype=tuff.float32).reshape(2, 3).contiguous()
        a = np.asarray(t)
        self.assertEqual(a.ctypes.data, t.data_ptr())
        a[0, 1] = 9
        self.assertEqual(t.tolist(), [[0, 9, 2], [3, 4, 5]])
        t.assign(t * 2)
        t.realize()
        tuff.synchronize()
        self.assertEqual(a.tolist(), [[0, 18, 4], [6, 8, 10]])
        b = np.array(t)
        b[:] = 0
        self.assertEqual(t[1, 2].item(), 10)
        self.assertEqual(np.asarray(t, dtype=np.int8).dtype, np.int8)

    def test_views_outlive_tensors(self):
        t = tuff.arange(1000, dtype=tuff.float32)
        a, view = t.numpy(), memoryview(t)
        del t
        settle()
        for _ in range(20):
            tuff.full(1000, -1).realize()
        tuff.synchronize()
        np.testing.assert_array_equal(a, np.arange(1000))
        self.assertEqual((view[5], view.format, view.shape), (5, "f", (1000,)))

    def test_views_outlive_assignments(self):
        # An assignment through one tensor leaves others the old contents, in memory of their own.
        x = tuff.arange(1000, dtype=tuff.float32).realize()
        y = x.reshape(10, 100)
        a = y.numpy()
        x.assign(x + 1)
        x.realize()
        tuff.synchronize()
        self.assertEqual(a[0, 0], 1)
        self.assertEqual(y[0, 0].item(), 0)
        del x, y
        settle()
        for _ in range(20):
            tuff.full(1000, -1).realize()
        tuff.synchronize()
        np.testing.assert_array_equal(a.ravel(), np.arange(1, 1001))

    def test_empty_and_scalar(self):
        self.assertEqual(tuff.zeros((0, 3)).numpy().shape, (0, 3))
        self.assertEqual(tuff.tensor(5).numpy().shape, ())
        self.assertEqual(tuff.tensor(5).numpy(), 5)

    def test_copies(self):
        t = tuff.tensor([1, 2, 3])
        target = np.zeros(3, np.int32)
        t.copy_to(target)
        self.assertEqual(target.tolist(), [1, 2, 3])
        self.assertRaises(ValueError, t.copy_to, np.zeros(4, np.int32))
        self.assertRaises((BufferError, ValueError), t.copy_to, b"123456789012")
        self.assertRaises(ValueError, t.copy_from, np.zeros(4, np.int32))
        self.assertEqual(tuff.from_bytes(target, [3], dtype="int32").tolist(), [1, 2, 3])
        self.assertRaises(tuff.ShapeError, tuff.from_bytes, target, [4])


class DLPack(unittest.TestCase):
    def test_numpy_to_tuff(self):
        for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
                      "float16", "float32", "float64"):
            a = np.arange(12).astype(dtype).reshape(3, 4)
            t = tuff.from_dlpack(a)
            self.assertEqual((t.dtype, t.shape, t.device), (dtype, (3, 4), "CPU"))
            a[2, 3] = 100
            self.assertEqual(t[2, 3].item(), 100)
        a = np.arange(24, dtype=np.float32).reshape(4, 6)
        for view in (a.T, a[::2, 1:], a[1:, ::-2]):
            np.testing.assert_array_equal(tuff.from_dlpack(view).numpy(), view)

    def test_tuff_to_numpy(self):
        for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
                      "float16", "float32", "float64"):
            t = tuff.arange(12, dtype=dtype).reshape(3, 4)
            a = np.from_dlpack(t)
            self.assertEqual((a.dtype, a.shape), (np.dtype(dtype), (3, 4)))
            np.testing.assert_array_equal(a, np.arange(12).reshape(3, 4))
            t.assign(t + 1)
            t.realize()
            tuff.synchronize()
            np.testing.assert_array_equal(a, np.arange(1, 13).reshape(3, 4))

    def test_round_trip_is_the_same_memory(self):
        a = np.arange(5, dtype=np.float64)
        b = np.from_dlpack(tuff.from_dlpack(a))
        self.assertEqual(a.ctypes.data, b.ctypes.data)
        t = tuff.arange(5).realize()
        for capsule in (t.__dlpack__(), t.__dlpack__(max_version=(1, 0)),
                        t.__dlpack__(max_version=(2, 1))):
            u = tuff.from_dlpack(capsule)
            self.assertEqual(u.data_ptr(), t.data_ptr())
            self.assertRaises(tuff.InvalidArgument, tuff.from_dlpack, capsule)
        copied = tuff.from_dlpack(t.__dlpack__(copy=True, max_version=(1, 0)))
        self.assertNotEqual(copied.data_ptr(), t.data_ptr())
        self.assertEqual(copied.tolist(), t.tolist())
        for dtype in ("bool", "bfloat16"):
            u = tuff.ones(3, dtype=dtype)
            self.assertEqual(tuff.from_dlpack(u).dtype, dtype)
            self.assertEqual(tuff.from_dlpack(u).tolist(), [1, 1, 1])

    def test_what_is_asked_for(self):
        t = tuff.ones(2)
        self.assertEqual(t.__dlpack_device__(), (1, 0))
        self.assertIn("dltensor_versioned", repr(t.__dlpack__(max_version=(1, 1))))
        self.assertIn('"dltensor"', repr(t.__dlpack__()))
        self.assertIn('"dltensor"', repr(t.__dlpack__(max_version=(0, 8))))
        self.assertRaises(BufferError, t.__dlpack__, dl_device=(2, 0))
        self.assertRaises(ValueError, t.__dlpack__, stream=1)
        self.assertRaises(BufferError, tuff.ones(2, requires_grad=True).__dlpack__)

    def test_read_only_passes_on(self):
        t = tuff.from_blob(b"\1\2\3\4")
        self.assertRaises(BufferError, t.__dlpack__)
        u = tuff.from_dlpack(t.__dlpack__(max_version=(1, 0)))
        self.assertRaisesRegex(ValueError, "read-only", u.assign, u + u)

    def test_refused(self):
        self.assertRaises(TypeError, tuff.from_dlpack, [1, 2])
        self.assertRaises(tuff.InvalidArgument, tuff.from_dlpack, np.zeros(2, complex))
        self.assertRaises(tuff.InvalidArgument, tuff.from_dlpack, make_capsule(b"other"))

        class Elsewhere:
            def __dlpack__(self, **options):
                raise AssertionError("not to be asked")

            def __dlpack_device__(self):
                return (8, 0)
        self.assertRaisesRegex(tuff.Unsupported, "device type 8", tuff.from_dlpack, Elsewhere())

    def test_lifetimes(self):
        a, alive = watched([1, 2, 3])
        t = tuff.from_dlpack(a)
        del a
        settle()
        self.assertIsNotNone(alive())
        self.assertEqual(t.tolist(), [1, 2, 3])
        del t
        settle()
        self.assertIsNone(alive())

        a, alive = watched([1, 2, 3])
        capsule = tuff.from_blob(a).__dlpack__()
        del a
        settle()
        self.assertIsNotNone(alive(), "a capsule that nobody took holds it")
        del capsule
        settle()
        self.assertIsNone(alive())

        a, alive = watched([1, 2, 3])
        b = np.from_dlpack(tuff.from_dlpack(a))
        del a
        settle()
        self.assertEqual(b.tolist(), [1, 2, 3])
        self.assertIsNotNone(alive())
        del b
        settle()
        self.assertIsNone(alive())


def make_capsule(name):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(1, name, None)


class AtExit(unittest.TestCase):
    def run_python(self, code):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def test_tensors_of_modules_may_stay(self):
        self.run_python(
            "import numpy as np, tuff\n"
            "a = np.ones((400, 400), np.float32)\n"
            "t = tuff.from_blob(a)\n"
            "u = tuff.from_dlpack(a)\n"
            "v = (t @ u).realize()\n"
            "w = np.asarray(v)\n"
            "capsule = v.__dlpack__()\n"
            "f = tuff.jit(lambda x: x @ t)\n"
            "for _ in range(3): r = f(u)\n"
            "tuff.kept = t\n"
            "class C: pass\n"
            "c = C(); c.c = c; c.t = t; c.f = f\n")

    def test_work_in_flight_at_exit(self):
        for _ in range(3):
            self.run_python(
                "import numpy as np, tuff\n"
                "t = tuff.from_blob(np.ones((700, 700), np.float32))\n"
                "u = (t @ t @ t).realize()\n"
                "del t\n")

    def test_uncaught_errors(self):
        done = subprocess.run([sys.executable, "-c", "import tuff; t = tuff.ones(3); t.reshape(4)"],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 1)
        self.assertIn("tuff.ShapeError: ", done.stderr)


def vulkan_device():
    return next((d for d in tuff.devices() if d.startswith("VULKAN:")), None)


@unittest.skipUnless(vulkan_device(), "there is no Vulkan device")
class Vulkan(unittest.TestCase):
    def setUp(self):
        self.device = vulkan_device()
        self.number = int(self.device.split(":")[1])

    def arange(self, n):
        return tuff.arange(n, dtype="float32", device=self.device).realize()

    def test_round_trip_is_the_same_memory(self):
        t = self.arange(5)
        self.assertEqual(t.__dlpack_device__(), (7, self.number))
        for options in ({}, {"max_version": (1, 0)}, {"dl_device": (7, self.number)}):
            u = tuff.from_dlpack(t.__dlpack__(**options))
            self.assertEqual((u.device, u.tolist()), (self.device, [0, 1, 2, 3, 4]))
            u.assign(u + 1).realize().tolist()
            self.assertEqual((t + 0).tolist(), [1, 2, 3, 4, 5])
            u.assign(u - 1).realize().tolist()
        self.assertIn("dltensor_versioned", repr(t.__dlpack__(max_version=(1, 1))))
        copied = tuff.from_dlpack(t.__dlpack__(copy=True, max_version=(1, 0)))
        copied.assign(copied * 9).realize()
        self.assertEqual(t.tolist(), [0, 1, 2, 3, 4])

    def test_parts(self):
        t = self.arange(100)
        part = t[64:].realize()
        self.assertEqual(tuff.from_dlpack(part).tolist(), list(range(64, 100)))

    def test_moves_to_the_cpu_where_asked(self):
        t = self.arange(3)
        u = tuff.from_dlpack(t.__dlpack__(dl_device=(1, 0), max_version=(1, 0)))
        self.assertEqual((u.device, u.tolist()), ("CPU", [0, 1, 2]))
        self.assertRaises(BufferError, t.__dlpack__, dl_device=(1, 0), copy=False)
        self.assertRaises(BufferError, t.__dlpack__, dl_device=(7, self.number + 1))
        self.assertRaisesRegex(ValueError, "has no streams", t.__dlpack__, stream=1)
        with self.assertRaisesRegex((RuntimeError, BufferError), "[Dd]evice"):  # of NumPy
            np.from_dlpack(t)

    def test_the_example(self):
        path = pathlib.Path(__file__).resolve().parents[2] / "examples/python/share_memory.py"
        spec = importlib.util.spec_from_file_location("share_memory", path)
        example = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(example)
        array, same, memory = example.share(self.device)
        self.assertEqual(array.tolist(), [[200, 2, 4], [6, 8, 10]])
        self.assertTrue(same)
        if memory is not None:  # the driver may lack it
            np.testing.assert_array_equal(memory, np.arange(1, 1025))
        self.assertIsNone(example.share("NULL")[2])

    def test_unknown_buffers_are_refused(self):
        t = self.arange(3)
        capsule = t.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        data = ctypes.c_uint64.from_address(pointer(capsule, b"dltensor"))
        known, data.value = data.value, 12345
        self.assertRaisesRegex(tuff.Unsupported, "no VkBuffer that " + self.device,
                               tuff.from_dlpack, capsule)
        data.value = known
        self.assertEqual(tuff.from_dlpack(capsule).tolist(), [0, 1, 2])

    def test_lifetimes(self):
        t = self.arange(1000)
        u = tuff.from_dlpack(t.__dlpack__())
        del t
        for i in range(20):  # what took the memory would overwrite it
            (tuff.full(1000, i, device=self.device)).realize()
        self.assertEqual(u.tolist(), list(range(1000)))
        capsule = u.__dlpack__()
        del u
        self.assertEqual(tuff.from_dlpack(capsule).tolist(), list(range(1000)))


class Devices(unittest.TestCase):
    def test_without_a_number_of_dlpack(self):
        t = tuff.empty(3, device="NULL")
        self.assertRaises(BufferError, t.__dlpack__)
        self.assertRaises(BufferError, t.__dlpack_device__)

    def test_another_device_copies(self):
        others = [d for d in tuff.devices() if d != "CPU"]
        if not others:
            self.skipTest("there is no other device than the CPU")
        a = np.arange(3, dtype=np.float32)
        t = tuff.from_blob(a, device=others[0])
        a[0] = 9
        self.assertEqual((t + 1).tolist(), [10, 2, 3])
        self.assertEqual(t.device, others[0])
        np.testing.assert_array_equal(np.asarray(t), a)
        self.assertRaises(BufferError, memoryview, t)
        self.assertRaises(tuff.InvalidArgument, t.data_ptr)
        self.assertRaises(tuff.InvalidArgument, lambda: t + tuff.ones(3, device="CPU"))
        self.assertEqual(t[[2, 0]].tolist(), [2, 9])
        self.assertEqual(t.to("CPU").data_ptr() % 64, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
