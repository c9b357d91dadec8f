"""Counter-based random numbers and XXH64, as models/reference_random.h and the corpus compute them."""
import struct

import numpy as np

ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)


def threefry2x32(key, counter0, counter1):
    """Threefry2x32-20 over arrays of counters; two arrays of uint32."""
    schedule = [np.uint32(key[0]), np.uint32(key[1]),
                np.uint32(0x1BD11BDA ^ int(key[0]) ^ int(key[1]))]
    x0 = np.asarray(counter0, np.uint32) + schedule[0]
    x1 = np.asarray(counter1, np.uint32) + schedule[1]
    for r in range(20):
        x0 = x0 + x1
        turn = ROTATIONS[r % 8]
        x1 = ((x1 << np.uint32(turn)) | (x1 >> np.uint32(32 - turn))) ^ x0
        if r % 4 == 3:
            injection = r // 4 + 1
            x0 = x0 + schedule[injection % 3]
            x1 = x1 + schedule[(injection + 1) % 3] + np.uint32(injection)
    return x0, x1


def words(seed, stream, index):
    index = np.atleast_1d(np.asarray(index, np.uint32))
    return threefry2x32((seed, stream), index, np.zeros_like(index))


def bits(seed, stream, index):
    return words(seed, stream, index)[0]


def normals(seed, stream, shape, deviation):
    """Box-Muller in double from both words of each counter, rounded once to float."""
    count = int(np.prod(shape))
    word0, word1 = words(seed, stream, np.arange(count, dtype=np.uint32))
    u1 = 1.0 - (word0 >> np.uint32(8)) * 2.0 ** -24
    u2 = (word1 >> np.uint32(8)) * 2.0 ** -24
    values = np.sqrt(-2.0 * np.log(u1)) * np.cos(2.0 * np.pi * u2) * deviation
    return values.astype(np.float32).reshape(shape)


def xxh64_hex(data, seed=0):
    """XXH64 (github.com/Cyan4973/xxHash, doc/xxhash_spec.md)."""
    mask = (1 << 64) - 1
    p1, p2, p3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    p4, p5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5

    def rotl(x, r):
        return ((x << r) | (x >> (64 - r))) & mask

    def lane_round(acc, lane):
        return rotl((acc + lane * p2) & mask, 31) * p1 & mask

    at = 0
    if len(data) >= 32:
        lanes = [(seed + p1 + p2) & mask, (seed + p2) & mask, seed, (seed - p1) & mask]
        while at + 32 <= len(data):
            stripe = struct.unpack_from("<4Q", data, at)
            lanes = [lane_round(acc, lane) for acc, lane in zip(lanes, stripe)]
            at += 32
        acc = sum(rotl(lane, r) for lane, r in zip(lanes, (1, 7, 12, 18))) & mask
        for lane in lanes:
            acc = ((acc ^ lane_round(0, lane)) * p1 + p4) & mask
    else:
        acc = (seed + p5) & mask
    acc = (acc + len(data)) & mask
    while at + 8 <= len(data):
        acc = (rotl(acc ^ lane_round(0, struct.unpack_from("<Q", data, at)[0]), 27) * p1 + p4) & mask
        at += 8
    if at + 4 <= len(data):
        acc = (rotl(acc ^ (struct.unpack_from("<I", data, at)[0] * p1 & mask), 23) * p2 + p3) & mask
        at += 4
    for byte in data[at:]:
        acc = rotl(acc ^ (byte * p5 & mask), 11) * p1 & mask
    acc = (acc ^ (acc >> 33)) * p2 & mask
    acc = (acc ^ (acc >> 29)) * p3 & mask
    return f"{acc ^ (acc >> 32):016x}"
