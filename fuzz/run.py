#!/usr/bin/env python3
"""Runs a fuzz target on the seeds that the project makes; prints how many inputs were executed.

Usage: fuzz/run.py FUZZ_TARGET MAKE_CORPUS READER SECONDS [FOLDER]
FOLDER keeps the corpus, and what was found as FOLDER/READER-crash-*; without it both are gone
afterwards, but a finding is printed. Exit code 77 where the target was not built.
"""
import pathlib
import re
import subprocess
import sys
import tempfile


def run(target, maker, reader, seconds, folder):
    seeds, corpus = folder / "seeds", folder / f"corpus-{reader}"
    corpus.mkdir(parents=True, exist_ok=True)
    subprocess.run([maker, seeds], check=True)
    result = subprocess.run(
        [target, f"-max_total_time={seconds}", "-max_len=8192", "-timeout=20", "-rss_limit_mb=1024",
         "-malloc_limit_mb=512", "-print_final_stats=1", f"-artifact_prefix={folder}/{reader}-",
         corpus, seeds / reader], stderr=subprocess.PIPE, check=False)
    log = result.stderr.decode(errors="replace")
    executed = re.search(r"stat::number_of_executed_units:\s*(\d+)", log)
    print(f"fuzz_{reader}: {executed.group(1) if executed else 'no'} executions in {seconds} s, "
          f"{len(list(corpus.iterdir()))} inputs kept, exit code {result.returncode}")
    if result.returncode != 0 or not executed or int(executed.group(1)) == 0:
        print(log[-6000:])
        for found in folder.glob(f"{reader}-*"):
            print(f"{found.name}: {found.read_bytes().hex()}")
        return 1
    return 0


def main():
    if len(sys.argv) not in (5, 6):
        print(__doc__, file=sys.stderr)
        return 2
    target, maker, reader, seconds = sys.argv[1:5]
    if not maker or not pathlib.Path(target).exists():
        print(f"skipped: {target} was not built; it needs clang with libFuzzer (libclang-rt-19-dev)")
        return 77
    if len(sys.argv) == 6:
        return run(target, maker, reader, seconds, pathlib.Path(sys.argv[5]))
    with tempfile.TemporaryDirectory() as folder:
        return run(target, maker, reader, seconds, pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
