#!/usr/bin/env python3
"""Caches on disk outlive what happens to their writers: a training is killed again and again while it
compiles and writes, files are cut and overwritten, and the same training still gives the same losses.

Usage: killed_test.py PATH_OF_TUFF
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

KILLS = 8
SMALL = ["--layers", "1", "--heads", "2", "--embed", "16", "--context", "8", "--batch", "2", "--sample", "0", "--json"]
ENDLESS = 1_000_000  # steps, the most that are taken: such a training is still running when it is killed


def command(tuff, device, steps=3):
    return [tuff, "train", "gpt", "--device", device, "--steps", str(steps), *SMALL]


def losses(tuff, device, environment, folder):
    result = subprocess.run(command(tuff, device), capture_output=True, text=True, check=False, timeout=300, cwd=folder,
                            env={**os.environ, **environment})
    if result.returncode:
        sys.exit(f"{device}: exit code {result.returncode}\n{result.stderr[-3000:]}")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return [r["loss"] for r in rows if r["event"] == "step"]


def kill_at(tuff, device, environment, folder, seconds):
    process = subprocess.Popen(command(tuff, device, ENDLESS), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               cwd=folder, env={**os.environ, **environment}, start_new_session=True)
    time.sleep(seconds)
    if process.poll() is not None:
        sys.exit(f"{device}: a training without end ended by itself, exit code {process.returncode}")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def damage(cache, chosen):
    damaged = 0
    for path in sorted(p for p in pathlib.Path(cache).rglob("*") if p.is_file()):
        data = bytearray(path.read_bytes())
        if not data:
            continue
        if chosen.random() < 0.3:
            data = data[:chosen.randrange(len(data))]
        for _ in range(1 + len(data) // 500):
            if data:
                data[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
        path.write_bytes(data)
        damaged += 1
    return damaged


def main():
    tuff = os.path.abspath(sys.argv[1])
    listing = subprocess.run([tuff, "devices", "--json"], capture_output=True, text=True, check=False).stdout
    usable = {r["kind"] for r in map(json.loads, listing.splitlines()) if r["usable"]}
    chosen = random.Random(4)
    for device in ["CPU", "VULKAN"]:
        if device not in usable:
            print(f"{device} is not there: left out")
            continue
        with tempfile.TemporaryDirectory() as folder:
            wanted = losses(tuff, device, {"TUFF_CACHE": "0"}, folder)
            begin = time.monotonic()
            losses(tuff, device, {"TUFF_CACHE_DIR": f"{folder}/whole"}, folder)
            cold = time.monotonic() - begin
            cache = {"TUFF_CACHE_DIR": f"{folder}/cache"}
            for i in range(KILLS):
                kill_at(tuff, device, cache, folder, cold * (i + 1) / (KILLS + 1))
            if losses(tuff, device, cache, folder) != wanted:
                sys.exit(f"{device}: other losses with the caches of killed processes")
            for _ in range(3):
                damaged = damage(cache["TUFF_CACHE_DIR"], chosen)
                if not damaged:
                    sys.exit(f"{device}: no cache was written")
                if losses(tuff, device, cache, folder) != wanted:
                    sys.exit(f"{device}: other losses with damaged caches")
            print(f"{device}: {KILLS} trainings killed, {damaged} files damaged three times; losses {wanted}", flush=True)


if __name__ == "__main__":
    main()
