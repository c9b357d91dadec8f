#!/usr/bin/env python3
"""Shows how far a build is: reads what ninja or make prints, keeps all of it in a file, and prints one
line that is written over on a terminal, elsewhere a line every ten seconds.

Usage: scripts/build 2>&1 | tools/build_progress.py LOG
"""
import re
import sys
import time

STEP = re.compile(r"^\[\s*(\d+)(?:/(\d+)|%)\]")
EVERY_S = 10  # where lines cannot be written over


def progress_of(line):
    """'312 of 480' of ninja, '65 %' of make, or None."""
    step = STEP.match(line)
    if not step:
        return None
    return f"{step[1]} of {step[2]}" if step[2] else f"{step[1]} %"


def show(lines, log, out, clock=time.monotonic):
    terminal = out.isatty()
    begin, shown, progress = clock(), -EVERY_S, None
    for line in lines:
        log.write(line)
        log.flush()
        progress = progress_of(line) or progress
        elapsed = clock() - begin
        if progress and (terminal or elapsed - shown >= EVERY_S):
            shown = elapsed
            out.write(f"\r  {progress}, {elapsed:.0f} s   " if terminal else f"  {progress}, {elapsed:.0f} s\n")
            out.flush()
    if terminal and progress:
        out.write("\n")


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with open(sys.argv[1], "w", encoding="utf-8") as log:
            show(sys.stdin, log, sys.stdout)
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
