"""DLPack with CUDA's memory (kDLCUDA), on the library that stands in for its driver: addresses, lifetimes, and the
protocol's streams, with another user of CUDA in the process made by hand.

Environment: TUFF_CUDA_LIBRARY names that library."""
import ctypes
import gc
import os
import threading
import time
import unittest

import numpy as np

import dlpack_test
import tuff
from dlpack_test import Legacy, Producer, Versioned, pointer_of, take

CUDA = ctypes.CDLL(os.environ["TUFF_CUDA_LIBRARY"])
LEGACY_STREAM, NON_BLOCKING = 1, 1
u64, p = ctypes.c_uint64, ctypes.c_void_p


def call(name, *arguments):
    code = getattr(CUDA, name)(*arguments)
    assert code == 0, (name, code)


def made(name, *arguments):
    out = p()
    call(name, ctypes.byref(out), *arguments)
    return out.value


def calls(name):
    CUDA.fake_cuda_calls.restype = u64
    return CUDA.fake_cuda_calls(name.encode())


class Library:
    """What PyTorch would be: memory and streams of its own, in the primary context."""

    def __init__(self, gpu=0):
        call("cuInit", 0)
        self.context = made("cuDevicePrimaryCtxRetain", gpu)
        self.enter()
        self.stream = made("cuStreamCreate", NON_BLOCKING)
        self.gpu = gpu

    def enter(self):
        call("cuCtxSetCurrent", p(self.context))

    def memory(self, values, stream=None):
        """Filled in the order of a stream."""
        array = np.asarray(values, np.float32)
        address = made("cuMemAlloc_v2", ctypes.c_size_t(max(array.nbytes, 4)))
        self.write(address, array, stream or self.stream)
        return address

    def pinned(self, array):
        pages = made("cuMemHostAlloc", ctypes.c_size_t(max(array.nbytes, 8)), 3)
        ctypes.memmove(pages, array.ctypes.data, array.nbytes)
        return pages

    def write(self, address, values, stream):
        array = np.asarray(values, np.float32)
        call("cuMemcpyAsync", u64(address), u64(self.pinned(array)), ctypes.c_size_t(array.nbytes), p(stream))

    def read(self, address, count, stream=None):
        pages = self.pinned(np.zeros(count, np.float32))
        call("cuMemcpyAsync", u64(pages), u64(address), ctypes.c_size_t(4 * count), p(stream or self.stream))
        call("cuStreamSynchronize", p(stream or self.stream))
        return list((ctypes.c_float * count).from_address(pages))

    def gate(self, stream):
        """What comes later in the stream waits until the word that is given is not 0."""
        word = self.pinned(np.zeros(1, np.uint64))
        call("cuStreamWaitValue64_v2", p(stream), u64(word), u64(1), 0)
        return word

    def before(self, first, then):
        event = made("cuEventCreate", 0)
        call("cuEventRecord", p(event), p(first))
        call("cuStreamWaitEvent", p(then), p(event), 0)
        call("cuEventDestroy_v2", p(event))


def open_soon(word):
    def wait():
        time.sleep(0.05)
        ctypes.c_uint64.from_address(word).value = 1
    thread = threading.Thread(target=wait)
    thread.start()
    return thread


class Given(Producer):
    """A tensor of the other library, by the protocol; its memory is filled in `library.stream`."""

    def __init__(self, library, address, shape, kind=Versioned, **changes):
        super().__init__(np.zeros(shape, np.float32), kind, data=address, device_type=2, device_id=library.gpu, **changes)
        self.library, self.asked = library, []

    def __dlpack_device__(self):
        return 2, self.library.gpu

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append((stream, max_version))
        self.library.enter()
        if stream != -1:
            self.library.before(self.library.stream, stream or LEGACY_STREAM)
        return self.capsule()


class OldGiven(Given):
    """From before there were streams and versions: its work is ordered before the legacy default stream."""

    def __dlpack__(self):
        return super().__dlpack__()


class Cuda(unittest.TestCase):
    def setUp(self):
        self.device = "CUDA:0"
        self.assertIn(self.device, tuff.devices())
        self.library = Library()

    def arange(self, n):
        return tuff.arange(n, dtype="float32", device=self.device).realize()

    # ---- tuff's in other hands

    def test_data_is_the_address(self):
        t = self.arange(6)
        self.assertEqual(t.__dlpack_device__(), (2, 0))
        for kind, version in ((Legacy, None), (Versioned, (1, 0))):
            managed = take(t.__dlpack__(max_version=version), kind)
            d = managed.tensor
            self.assertEqual((d.device_type, d.device_id, d.shape[:1], d.strides[:1], d.byte_offset), (2, 0, [6], [1], 0))
            self.assertEqual(self.library.read(d.data, 6, LEGACY_STREAM), [0, 1, 2, 3, 4, 5])
            self.library.write(d.data + 4, [10, 20], self.library.stream)
            call("cuStreamSynchronize", p(self.library.stream))
            self.assertEqual((t + 1).tolist(), [1, 11, 21, 4, 5, 6])
            t.assign(self.arange(6)).realize()
            managed.deleter(ctypes.addressof(managed))

    def test_the_consumers_stream_waits(self):
        for stream in (None, LEGACY_STREAM, 2, self.library.stream):
            for n in range(6):
                t = tuff.full((256,), float(n), device=self.device)
                for _ in range(4):
                    t = (t + 1).contiguous()
                managed = take(t.__dlpack__(stream=stream, max_version=(1, 0)), Versioned)
                got = self.library.read(managed.tensor.data, 256, stream or LEGACY_STREAM)
                self.assertEqual(got, [n + 4.0] * 256, stream)
                managed.deleter(ctypes.addressof(managed))

    def test_no_stream_waits_where_none_is_to(self):
        t = self.arange(6)
        before = calls("cuStreamWaitEvent")
        t.__dlpack__(stream=-1)
        self.assertEqual(calls("cuStreamWaitEvent"), before)
        t.__dlpack__(stream=self.library.stream)
        self.assertGreater(calls("cuStreamWaitEvent"), before)
        for stream in (0, -2):
            self.assertRaisesRegex(ValueError, "legacy default stream", t.__dlpack__, stream=stream)

    def test_moves_to_the_cpu_where_asked(self):
        t = self.arange(3)
        u = tuff.from_dlpack(t.__dlpack__(dl_device=(1, 0), max_version=(1, 0)))
        self.assertEqual((u.device, u.tolist()), ("CPU", [0, 1, 2]))
        self.assertRaises(BufferError, t.__dlpack__, dl_device=(1, 0), copy=False)
        self.assertRaises(BufferError, t.__dlpack__, dl_device=(2, 1))

    def test_round_trip_is_the_same_memory(self):
        t = self.arange(5)
        u = tuff.from_dlpack(t)
        self.assertEqual((u.device, u.tolist()), (self.device, [0, 1, 2, 3, 4]))
        u.assign(u + 1).realize().tolist()
        self.assertEqual((t + 0).tolist(), [1, 2, 3, 4, 5])
        copied = tuff.from_dlpack(t.__dlpack__(copy=True, max_version=(1, 0)))
        copied.assign(copied * 9).realize()
        self.assertEqual(t.tolist(), [1, 2, 3, 4, 5])

    # ---- others' in tuff's

    def test_tuff_waits_for_the_producers_work(self):
        for kind in (Given, OldGiven):
            word = self.library.gate(self.library.stream)
            address = self.library.memory(np.arange(64), self.library.stream)
            given = kind(self.library, address, 64)
            t = tuff.from_dlpack(given)
            self.assertEqual(t.device, self.device)
            opener = open_soon(word)
            self.assertEqual((t * 2).tolist(), [2.0 * i for i in range(64)])
            self.assertEqual(t.tolist(), list(range(64)))
            opener.join()
            stream, version = given.asked[-1]
            if kind is Given:
                self.assertGreater(stream, 2)
                self.assertGreaterEqual(version, (1, 0))
            del t

    def test_a_capsule_is_the_legacy_default_streams(self):
        word = self.library.gate(LEGACY_STREAM)
        address = self.library.memory([1, 2, 3, 4], LEGACY_STREAM)
        t = tuff.from_dlpack(Given(self.library, address, 4).capsule())
        opener = open_soon(word)
        self.assertEqual(t.tolist(), [1, 2, 3, 4])
        opener.join()

    def test_writes_are_seen_and_strides_kept(self):
        address = self.library.memory(range(12))
        t = tuff.from_dlpack(Given(self.library, address, (3, 4)))
        t.assign(t + 1).realize()
        managed = take(t.__dlpack__(stream=self.library.stream, max_version=(1, 0)), Versioned)
        self.assertEqual(managed.tensor.data, address)
        self.assertEqual(self.library.read(address, 12), list(range(1, 13)))
        managed.deleter(ctypes.addressof(managed))
        strides = (ctypes.c_int64 * 2)(1, 4)
        u = tuff.from_dlpack(Given(self.library, address, (4, 3), strides=strides))
        self.assertEqual(u.tolist(), [[1, 5, 9], [2, 6, 10], [3, 7, 11], [4, 8, 12]])
        back = tuff.from_dlpack(Given(self.library, address, 3, strides=(ctypes.c_int64 * 1)(-1), byte_offset=24))
        self.assertEqual(back.tolist(), [7, 6, 5])
        part = tuff.from_dlpack(Given(self.library, address + 16, 4))
        self.assertEqual(part.tolist(), [5, 6, 7, 8])

    def test_memory_goes_back_once(self):
        given = Given(self.library, self.library.memory([1, 2, 3]), 3)
        t = tuff.from_dlpack(given)
        y = (t + 1).realize()
        del t
        y.tolist()
        for _ in range(3):
            (tuff.ones(1, device=self.device) + 1).tolist()
            dlpack_test.settle()
            gc.collect()
        self.assertEqual((given.deleted, y.tolist()), (1, [2, 3, 4]))

    def test_what_cannot_be_shared_is_refused(self):
        address = self.library.memory(range(8))
        host = self.library.pinned(np.zeros(8, np.float32))
        other = Library(1)
        elsewhere = other.memory(range(8))
        self.library.enter()
        for given, wanted in ((Given(self.library, host, 8), "the host's"),
                              (Given(self.library, elsewhere, 8), "CUDA:1's"),
                              (Given(self.library, address + 4, 4), "aligned to 16 bytes"),
                              (Given(self.library, address, 9), "36 bytes at byte 0 of a buffer of 32"),
                              (Given(self.library, 64, 4), "no memory that CUDA knows")):
            self.assertRaisesRegex(ValueError, wanted, tuff.from_dlpack, given)
            self.assertEqual(given.deleted, 0)
        there = tuff.from_dlpack(Given(other, elsewhere, 8))
        self.assertEqual((there.device, there.tolist()), ("CUDA:1", list(range(8))))
        read_only = tuff.from_dlpack(Given(self.library, address, 8, flags=1))
        self.assertRaises(BufferError, read_only.__dlpack__)
        pointer_of(read_only.__dlpack__(max_version=(1, 0)), Versioned.NAME)


if __name__ == "__main__":
    unittest.main()
