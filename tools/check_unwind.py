#!/usr/bin/env python3
"""Fails if a program has unwind entries of no length in the place of others.

Usage: tools/check_unwind.py PROGRAM
GCC 12 emits such an entry for a function whose cold part is empty. The unwinder finds it instead of the entry of
the function that begins at the same address, and an exception through that one ends in abort(). The remedy is
-fno-reorder-blocks-and-partition for the file. Exit codes: 0 good, 1 found, 77 no readelf.
"""
import re
import shutil
import subprocess
import sys

ENTRY = re.compile(r"FDE cie=\w+ pc=(\w+)\.\.(\w+)")


def hidden_entries(dump):
    """Addresses at which an entry without length stands beside one with it."""
    ranges = ENTRY.findall(dump)
    occupied = {begin for begin, end in ranges if begin != end}
    return sorted({begin for begin, end in ranges if begin == end and begin in occupied})


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not shutil.which("readelf"):
        print("readelf is not there (binutils): skipped")
        return 77
    dump = subprocess.run(["readelf", "--debug-dump=frames", sys.argv[1]], capture_output=True, text=True, check=True).stdout
    found = hidden_entries(dump)
    for address in found:
        print(f"{sys.argv[1]}: the unwind entry at 0x{address} is hidden by an empty one; see tools/check_unwind.py")
    print(f"{len(ENTRY.findall(dump))} unwind entries, {len(found)} hidden")
    return 1 if found or not ENTRY.search(dump) else 0


if __name__ == "__main__":
    sys.exit(main())
