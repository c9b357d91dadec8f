"""DLPack of OpenCL's devices: capsules that hold a cl_mem, taken and made by hand as another library
of the process would, with OpenCL itself through ctypes."""
import ctypes
import gc
import unittest

import numpy as np

import tuff
import dlpack_test
from dlpack_test import Legacy, Producer, Versioned, name_of, pointer_of, take

# ---- as much of OpenCL as a consumer needs

CL = ctypes.CDLL("libOpenCL.so.1")
CONTEXT_DEVICES, MEM_TYPE, MEM_REFERENCE_COUNT, MEM_CONTEXT = 0x1081, 0x1100, 0x1105, 0x1106
BUFFER, TRUE = 0x10F0, 1
READ_WRITE, WRITE_ONLY, READ_ONLY, COPY_HOST_PTR = 1, 2, 4, 32
for name in ("clCreateContext", "clCreateCommandQueue", "clCreateBuffer"):
    getattr(CL, name).restype = ctypes.c_void_p


def p(handle):
    return ctypes.c_void_p(handle)


def info(get, handle, what, type_=ctypes.c_void_p):
    value = type_()
    code = get(p(handle), what, ctypes.c_size_t(ctypes.sizeof(value)), ctypes.byref(value), None)
    assert code == 0, code
    return value.value


class Library:
    """Another library on the context of a cl_mem, with a queue of its own."""

    def __init__(self, mem):
        self.context = info(CL.clGetMemObjectInfo, mem, MEM_CONTEXT)
        self.device = info(CL.clGetContextInfo, self.context, CONTEXT_DEVICES)
        self.queue = CL.clCreateCommandQueue(p(self.context), p(self.device), ctypes.c_uint64(0), None)

    def read(self, mem, offset, count):
        out = (ctypes.c_float * count)()
        code = CL.clEnqueueReadBuffer(p(self.queue), p(mem), TRUE, ctypes.c_size_t(offset), ctypes.c_size_t(4 * count),
                                      out, 0, None, None)
        assert code == 0, code
        return list(out)

    def write(self, mem, offset, values):
        data = (ctypes.c_float * len(values))(*values)
        code = CL.clEnqueueWriteBuffer(p(self.queue), p(mem), TRUE, ctypes.c_size_t(offset),
                                       ctypes.c_size_t(4 * len(values)), data, 0, None, None)
        assert code == 0, code

    def buffer(self, values, flags=READ_WRITE, context=None):
        data = (ctypes.c_float * len(values))(*values)
        return CL.clCreateBuffer(p(context or self.context), ctypes.c_uint64(flags | COPY_HOST_PTR),
                                 ctypes.c_size_t(4 * len(values)), data, None)


def settle():
    """What the device holds goes back when it is done and somebody asks it for memory."""
    for _ in range(2):
        (tuff.ones(1, device="CL:0") + 1).tolist()
    dlpack_test.settle()


def references(mem):
    return info(CL.clGetMemObjectInfo, mem, MEM_REFERENCE_COUNT, ctypes.c_uint32)


def handle_of(t):
    """The cl_mem and the offset of a tensor, from a capsule that nobody takes."""
    capsule = t.__dlpack__(max_version=(1, 0))
    tensor = Versioned.from_address(pointer_of(capsule, Versioned.NAME)).tensor
    return tensor.data, tensor.byte_offset


class OpenCL(unittest.TestCase):
    def setUp(self):
        self.device = "CL:0"
        self.assertIn(self.device, tuff.devices(), "the tests need PoCL")

    def arange(self, n):
        return tuff.arange(n, dtype="float32", device=self.device).realize()

    def produced(self, mem, shape, kind=Versioned, **changes):
        array = np.zeros(shape, np.float32)
        return Producer(array, kind, data=mem, device_type=4, device_id=0, **changes)

    def test_round_trip_is_the_same_memory(self):
        t = self.arange(5)
        self.assertEqual(t.__dlpack_device__(), (4, 0))
        for options in ({}, {"max_version": (1, 0)}, {"dl_device": (4, 0)}):
            u = tuff.from_dlpack(t.__dlpack__(**options))
            self.assertEqual((u.device, u.tolist()), (self.device, [0, 1, 2, 3, 4]))
            u.assign(u + 1).realize().tolist()
            self.assertEqual((t + 0).tolist(), [1, 2, 3, 4, 5])
            u.assign(u - 1).realize().tolist()
        self.assertEqual(tuff.from_dlpack(t).tolist(), [0, 1, 2, 3, 4])
        copied = tuff.from_dlpack(t.__dlpack__(copy=True, max_version=(1, 0)))
        copied.assign(copied * 9).realize()
        self.assertEqual(t.tolist(), [0, 1, 2, 3, 4])

    def test_data_is_a_cl_mem(self):
        t = self.arange(6)
        for kind, version in ((Legacy, None), (Versioned, (1, 0))):
            managed = take(t.__dlpack__(max_version=version), kind)
            d = managed.tensor
            self.assertEqual((d.device_type, d.device_id, d.shape[:1], d.strides[:1]), (4, 0, [6], [1]))
            self.assertEqual(info(CL.clGetMemObjectInfo, d.data, MEM_TYPE, ctypes.c_uint32), BUFFER)
            library = Library(d.data)
            self.assertEqual(library.read(d.data, d.byte_offset, 6), t.tolist())
            library.write(d.data, d.byte_offset + 4, [10, 20])
            self.assertEqual((t + 1).tolist(), [1, 11, 21, 4, 5, 6])
            t.assign(self.arange(6)).realize()
            managed.deleter(ctypes.addressof(managed))

    def test_parts_have_offsets(self):
        t = self.arange(100)
        part = t[64:].realize()
        mem, offset = handle_of(part)
        self.assertEqual(Library(mem).read(mem, offset, 36), list(range(64, 100)))
        self.assertEqual(tuff.from_dlpack(part).tolist(), list(range(64, 100)))

    def test_moves_to_the_cpu_where_asked(self):
        t = self.arange(3)
        u = tuff.from_dlpack(t.__dlpack__(dl_device=(1, 0), max_version=(1, 0)))
        self.assertEqual((u.device, u.tolist()), ("CPU", [0, 1, 2]))
        self.assertRaises(BufferError, t.__dlpack__, dl_device=(1, 0), copy=False)
        self.assertRaises(BufferError, t.__dlpack__, dl_device=(4, 1))
        self.assertRaisesRegex(ValueError, "has no streams", t.__dlpack__, stream=1)

    def test_the_consumer_outlives_the_tensor(self):
        for kind, version in ((Legacy, None), (Versioned, (1, 0))):
            t = self.arange(1000)
            managed = take(t.__dlpack__(max_version=version), kind)
            del t
            settle()
            churn = [tuff.full(1000, i, device=self.device).realize() for i in range(20)]
            d = managed.tensor
            self.assertEqual(Library(d.data).read(d.data, d.byte_offset, 1000), list(range(1000)))
            del churn
            managed.deleter(ctypes.addressof(managed))
        u = tuff.from_dlpack(self.arange(1000).__dlpack__())
        for i in range(20):
            tuff.full(1000, i, device=self.device).realize()
        capsule = u.__dlpack__()
        del u
        self.assertEqual(tuff.from_dlpack(capsule).tolist(), list(range(1000)))

    def test_capsules_that_nobody_took(self):
        for version in (None, (1, 0)):
            t = self.arange(10)
            capsules = [t.__dlpack__(max_version=version) for _ in range(10)]
            del t, capsules
            settle()
        self.assertEqual(self.arange(10).tolist(), list(range(10)))

    def test_memory_of_another_library(self):
        anchor = self.arange(1)
        library = Library(handle_of(anchor)[0])
        for kind in (Legacy, Versioned):
            mem = library.buffer(range(12))
            before = references(mem)
            producer = self.produced(mem, (2, 3), kind, byte_offset=8)
            capsule = producer.capsule()
            t = tuff.from_dlpack(capsule)
            self.assertEqual(name_of(capsule), kind.USED)
            self.assertGreater(references(mem), before)
            self.assertEqual((t.device, t.tolist()), (self.device, [[2, 3, 4], [5, 6, 7]]))
            library.write(mem, 8, [50])
            t.assign(t * 2).realize().tolist()
            self.assertEqual(library.read(mem, 0, 5), [0, 1, 100, 6, 8])
            again = self.produced(mem, 12)  # the same object a second time, given out again
            u = tuff.from_dlpack(tuff.from_dlpack(again.capsule()))
            later = u * 2
            del t, capsule, u
            settle()
            self.assertEqual((producer.deleted, again.deleted), (1, 0))
            self.assertEqual(later.tolist()[:3], [0, 2, 200])
            del later
            settle()
            self.assertEqual((producer.deleted, again.deleted, references(mem)), (1, 1, before))
            CL.clReleaseMemObject(p(mem))

    def test_held_by_a_jit(self):
        library = Library(handle_of(self.arange(1))[0])
        mem = library.buffer([1, 2, 3, 4])
        producer = self.produced(mem, 4)
        t = tuff.from_dlpack(producer.capsule())
        f = tuff.jit(lambda x: x + t)
        for i in range(4):
            self.assertEqual(f(tuff.full(4, i, device=self.device).realize()).tolist(), [1 + i, 2 + i, 3 + i, 4 + i])
        del t
        settle()
        self.assertEqual(producer.deleted, 0)
        del f
        settle()
        self.assertEqual(producer.deleted, 1)
        CL.clReleaseMemObject(p(mem))

    def test_strides(self):
        library = Library(handle_of(self.arange(1))[0])
        mem = library.buffer(range(12))
        strides = (ctypes.c_int64 * 2)(1, 4)
        t = tuff.from_dlpack(self.produced(mem, (4, 3), strides=strides).capsule())
        self.assertEqual(t.tolist(), np.arange(12).reshape(3, 4).T.tolist())
        back = (ctypes.c_int64 * 1)(-1)
        u = tuff.from_dlpack(self.produced(mem, 3, strides=back, byte_offset=44).capsule())
        self.assertEqual(u.tolist(), [11, 10, 9])
        del t, u
        settle()
        CL.clReleaseMemObject(p(mem))

    def test_read_only(self):
        library = Library(handle_of(self.arange(1))[0])
        for flags, capsule_flags in ((READ_ONLY, 0), (READ_WRITE, 1)):
            mem = library.buffer([1, 2], flags)
            t = tuff.from_dlpack(self.produced(mem, 2, Versioned, flags=capsule_flags).capsule())
            self.assertEqual((t + 1).tolist(), [2, 3])
            self.assertRaisesRegex(tuff.InvalidArgument, "read-only", t.assign, t + 1)
            self.assertRaises(BufferError, t.__dlpack__)
            del t
            settle()
            CL.clReleaseMemObject(p(mem))

    def test_a_failure_takes_nothing(self):
        library = Library(handle_of(self.arange(1))[0])
        device = ctypes.c_void_p(library.device)
        other = CL.clCreateContext(None, 1, ctypes.byref(device), None, None, None)
        mem, foreign = library.buffer([1, 2, 3, 4]), library.buffer([1, 2], context=other)
        written, none = library.buffer([1, 2], WRITE_ONLY), np.ones(100, np.float64)
        for error, text, producer in [
                (tuff.Unsupported, "no cl_mem that CL:0 knows", self.produced(12345, 2)),
                (tuff.Unsupported, "no cl_mem that CL:0 knows", self.produced(None, 2)),
                (tuff.Unsupported, "no cl_mem that CL:0 knows", self.produced(none.ctypes.data, 2)),
                (tuff.InvalidArgument, "another context", self.produced(foreign, 2)),
                (tuff.InvalidArgument, "CL_MEM_WRITE_ONLY", self.produced(written, 2)),
                (tuff.InvalidArgument, "buffer of 16", self.produced(mem, 5)),
                (tuff.InvalidArgument, "buffer of 16", self.produced(mem, 2, byte_offset=12)),
                (tuff.InvalidArgument, "not a multiple of 4", self.produced(mem, 2, byte_offset=2)),
                (tuff.InvalidArgument, "matches no device|does not exist", Producer(
                    np.zeros(2, np.float32), data=mem, device_type=4, device_id=77)),
        ]:
            capsule, before = producer.capsule(), references(mem)
            with self.assertRaisesRegex(error, text):
                tuff.from_dlpack(capsule)
            self.assertEqual(name_of(capsule), Versioned.NAME, "the capsule is still its owner's: " + text)
            settle()
            self.assertEqual((producer.deleted, references(mem)), (0, before), text)
        gc.collect()
        for m in (mem, foreign, written):
            CL.clReleaseMemObject(p(m))
        CL.clReleaseContext(p(other))


if __name__ == "__main__":
    unittest.main()
