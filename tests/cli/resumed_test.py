#!/usr/bin/env python3
"""Trainings that are killed (SIGKILL) and resumed have the losses of one that nobody disturbed, bit for bit, and
leave the same checkpoint, byte for byte: weights, moments, random numbers, the whole curve.

Usage: resumed_test.py PATH_OF_TUFF [--seed N]
Kills come at 20 random moments, and at 5 places inside the writing of a checkpoint, by injection
(TUFF_WRITE_FAULT). The seed is drawn anew each time and printed; --seed repeats a run, as far as moments can be.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

RANDOM_KILLS = 20
EVERY = 5
# A model that learns in milliseconds, with dropout, whose random numbers have to go on as well.
GPT = ["gpt", "--layers", "1", "--heads", "2", "--embed", "16", "--context", "8", "--batch", "2", "--steps", "120",
       "--dropout", "0.1", "--sample", "0"]
OTHERS = [["digits", "--steps", "20", "--batch", "8", "--test-images", "0"],
          ["copy", "--layers", "1", "--embed", "16", "--batch", "2", "--steps", "20"]]


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


class Scene:
    """A folder with the checkpoint of one training on one device."""

    def __init__(self, tuff, device, task, folder):
        self.tuff, self.device, self.task, self.folder = tuff, device, task, pathlib.Path(folder)
        self.file = self.folder / "state.safetensors"
        self.losses = {}  # by step, of all runs

    def begin(self, fault="", every=EVERY):
        """Starts a run from the checkpoint, if there is one; its lines go to a file, which survives it."""
        command = [self.tuff, "train", *self.task, "--device", self.device, "--json", "--save", self.file,
                   "--save-every", str(every)]
        if self.file.exists():
            command += ["--resume", self.file]
        environment = {**os.environ, "TUFF_WRITE_FAULT": fault}
        with open(self.folder / "lines", "wb") as lines:
            return subprocess.Popen(command, stdout=lines, stderr=subprocess.PIPE, cwd=self.folder, env=environment)

    def end(self, process):
        """Waits and takes the losses that the run has told. Returns its exit code."""
        error = process.communicate(timeout=300)[1].decode()
        for line in (self.folder / "lines").read_bytes().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break  # killed in the middle of it
            row = json.loads(line)
            if row["event"] == "step":
                known = self.losses.setdefault(row["step"], row["loss"])
                check(known == row["loss"], f"step {row['step']}: {row['loss']} after {known}")
        check(process.returncode in (0, -signal.SIGKILL), f"exit code {process.returncode}: {error}")
        return process.returncode

    def step(self):
        """Of the checkpoint, which has to be whole; 0 without one."""
        if not self.file.exists():
            return 0
        result = subprocess.run([self.tuff, "inspect", "--json", self.file], capture_output=True, text=True, check=False)
        check(result.returncode == 0, f"the checkpoint is not whole: {result.stderr}")
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        return int(next(r["value"] for r in rows if r.get("key") == "step"))

    def abandoned(self):
        return [p.name for p in self.folder.iterdir() if ".tmp." in p.name]

    def forget(self):
        self.file.unlink(missing_ok=True)
        self.losses = {}


def finish(scene, wanted, what):
    """Runs to the end and compares."""
    check(scene.end(scene.begin()) == 0, f"{what}: the last run was killed")
    for step, loss in scene.losses.items():
        check(loss == wanted.losses[step], f"{what}: step {step}: loss {loss}, undisturbed {wanted.losses[step]}")
    check(scene.file.read_bytes() == wanted.file.read_bytes(), f"{what}: another checkpoint than undisturbed")
    check(not scene.abandoned(), f"{what}: left behind: {scene.abandoned()}")


def undisturbed(scene):
    scene.end(scene.begin())  # compiles
    scene.forget()
    begin = time.monotonic()
    check(scene.end(scene.begin()) == 0, "the undisturbed run was killed")
    check(sorted(scene.losses) == list(range(1, len(scene.losses) + 1)), "steps are missing")
    return time.monotonic() - begin


def wait_for_steps(scene, process, count):
    """Until a run has told of so many steps, or is over."""
    while process.poll() is None and (scene.folder / "lines").read_bytes().count(b'"step",') < count:
        time.sleep(0.001)


def kill_at_random(scene, wanted, seconds, chosen):
    """Returns at which steps of their checkpoints the runs were killed. Every other one is killed after a random time,
    which on a loaded machine is while it starts; the others, and a random time, after a random number of steps."""
    steps = []
    while len(steps) < RANDOM_KILLS:
        process = scene.begin()
        by_steps = len(steps) % 2 == 1
        if by_steps:
            wait_for_steps(scene, process, chosen.randrange(2 * EVERY, 5 * EVERY))
        try:
            process.wait(chosen.uniform(0, 0.03 if by_steps else seconds))
        except subprocess.TimeoutExpired:
            process.kill()
        if scene.end(process) == 0:  # it was faster
            finish(scene, wanted, "killed at random")
            scene.forget()
        else:
            steps.append(scene.step())
    finish(scene, wanted, "killed at random")
    return steps


def kill_inside_writes(scene, wanted, chosen):
    size = wanted.file.stat().st_size
    last = max(wanted.losses)
    for place in [0, chosen.randrange(1, size - 1), "sync", "rename", "folder"]:
        scene.forget()
        write = chosen.randrange(1, 4)
        fault = f"file:state.safetensors,write:{write},kill:{place}"
        check(scene.end(scene.begin(fault)) == -signal.SIGKILL, f"{fault}: the run went on")
        done = EVERY * (write if place == "folder" else write - 1)
        check(scene.step() == done, f"{fault}: the checkpoint is of step {scene.step()}, not {done}")
        check(bool(scene.abandoned()) == (place != "folder"), f"{fault}: left behind: {scene.abandoned()}")
        check(max(scene.losses) < last, f"{fault}: nothing was left to do")
        finish(scene, wanted, fault)
        print(f"  {fault}: resumed at step {done}", flush=True)


def test(tuff, device, folder, chosen):
    def scene(name, task):
        path = pathlib.Path(folder) / f"{device}-{name}"
        path.mkdir()
        return Scene(tuff, device, task, path)

    wanted = scene("wanted", GPT)
    seconds = undisturbed(wanted)
    print(f"{device}: {len(wanted.losses)} steps in {seconds:.2f} s undisturbed", flush=True)
    if device == "CPU":
        steps = kill_at_random(scene("random", GPT), wanted, seconds, chosen)
        print(f"  {len(steps)} kills, checkpoints then of steps {steps}", flush=True)
        check(any(steps), "no run came as far as a checkpoint")
    kill_inside_writes(scene("inside", GPT), wanted, chosen)
    for task in OTHERS if device == "CPU" else []:
        wanted = scene(f"{task[0]}-wanted", task)
        check(wanted.end(wanted.begin()) == 0, "killed")
        broken = scene(task[0], task)
        check(broken.end(broken.begin("file:state.safetensors,write:2,kill:100")) == -signal.SIGKILL, "not killed")
        finish(broken, wanted, task[0])
        print(f"  {task[0]}: resumed", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tuff", type=os.path.abspath)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    chosen = random.Random(arguments.seed)
    listing = subprocess.run([arguments.tuff, "devices", "--json"], capture_output=True, text=True, check=False).stdout
    usable = {r["kind"] for r in map(json.loads, listing.splitlines()) if r["usable"]}
    for device in ["CPU", "VULKAN"]:
        if device not in usable:
            print(f"{device} is not there: left out")
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(arguments.tuff, device, folder, chosen)
            except Failure as failure:
                sys.exit(f"{device}, seed {arguments.seed}: {failure}")


if __name__ == "__main__":
    main()
