"""Memory that NumPy and tuff share, without a copy: an array as a tensor, a tensor as an array, and
pages of the process on which a Vulkan device's kernels work where they lie.

Usage: share_memory.py [DEVICE], for example VULKAN:0
"""
import mmap
import sys

import numpy as np

import tuff


def pages(count):
    """Whole pages, which begin where devices want memory to begin."""
    return np.frombuffer(mmap.mmap(-1, count * 4), np.float32)


def share(device):
    # An array's memory, as tuff's kernels read and write it.
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = tuff.from_blob(array)
    array[0, 0] = 100                       # is seen by what tuff computes from now on
    tensor.assign(tensor * 2).realize()
    tuff.synchronize()                      # before NumPy looks
    print("the array holds", array.tolist())

    # A tensor's memory as an array: by the buffer protocol, or by DLPack.
    result = (tensor + 1).realize()
    same = np.shares_memory(np.asarray(result), np.from_dlpack(result))
    print("both arrays are the tensor's memory:", same)

    # On another device a tensor over an array is a copy, unless its kernels can have the memory.
    memory = pages(1024)
    memory[:] = 1
    try:
        there = tuff.from_blob(memory, device=device, in_place=True)
    except tuff.Unsupported as error:
        print("a copy is needed:", error)
        return array, same, None
    there.assign(there + tuff.arange(1024, device=device)).realize()
    tuff.synchronize(device)
    print(f"{device} has written 1..1024:", memory[0], memory[1023])
    return array, same, memory


if __name__ == "__main__":
    others = [name for name in tuff.devices() if name.startswith("VULKAN")]
    share(sys.argv[1] if len(sys.argv) > 1 else (others or ["CPU"])[0])
