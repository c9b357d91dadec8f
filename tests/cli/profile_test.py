#!/usr/bin/env python3
"""TUFF_PROFILE writes a trace in the Trace Event Format (JSON object format), which Perfetto opens: a
track per queue with every kernel by name, a track per host thread, all on one clock.

Usage: profile_test.py TUFF [unittest options]
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TUFF = None
STEPS = 5
HOST = 1  # the process that stands for the host
TOLERANCE_US = 2000.0  # between a device's clock, calibrated, and the host's


def usable_devices():
    listing = subprocess.run([TUFF, "devices", "--json"], capture_output=True, text=True, check=False).stdout
    rows = [json.loads(line) for line in listing.splitlines()]
    return [row["name"] for row in rows if row["usable"] and row["kind"] in ("CPU", "VULKAN")]


class Trace(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def train(self, device, *options):
        """The trace of five steps, and the summary that the training printed."""
        file = self.folder / "trace.json"
        env = {**os.environ, "TUFF_PROFILE": str(file)}
        result = subprocess.run([TUFF, "train", "digits", "--steps", str(STEPS), "--device", device, "--json", *options],
                                capture_output=True, text=True, env=env, cwd=self.folder, timeout=280, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(file.read_text()), json.loads(result.stdout.splitlines()[-1])

    def check_format(self, trace):
        """What the format asks of every event; the complete ones by track."""
        self.assertEqual(trace["displayTimeUnit"], "ms")
        names, tracks = {}, collections.defaultdict(list)
        for event in trace["traceEvents"]:
            self.assertIn(event["ph"], "XM")
            self.assertIsInstance(event["name"], str)
            self.assertIsInstance(event["pid"], int)
            self.assertIsInstance(event["tid"], int)
            if event["ph"] == "M":
                self.assertIn(event["name"], ("process_name", "thread_name"))
                names[event["name"], event["pid"], event["tid"]] = event["args"]["name"]
                continue
            self.assertTrue(event["name"])
            self.assertGreater(event["ts"], 0)
            self.assertGreaterEqual(event["dur"], 0)
            tracks[event["pid"], event["tid"]].append(event)
        for process, thread in tracks:
            self.assertIn(("process_name", process, 0), names)
            self.assertIn(("thread_name", process, thread), names)
        return names, tracks

    def check_device(self, device, *options):
        trace, summary = self.train(device, *options)
        names, tracks = self.check_format(trace)
        self.assertEqual(names["process_name", HOST, 0], "host")
        host = [event for (process, _), events in tracks.items() for event in events if process == HOST]
        host_names = {event["name"] for event in host}
        self.assertLessEqual({"schedule", "lower", "render", "compile", "load", "submit"}, host_names)
        if "--no-jit" not in options:
            self.assertIn("replay", host_names)
        queues = [key for key in tracks if key[0] != HOST]
        self.assertEqual([names["process_name", process, 0] for process, _ in queues], [device])
        self.assertEqual(names["thread_name", queues[0][0], queues[0][1]], "compute queue")
        work = sorted(tracks[queues[0]], key=lambda event: event["ts"])
        # Every step's kernels are there, those of the replayed steps too.
        self.assertGreaterEqual(len(work), STEPS * summary["kernels_per_step"])
        counts = collections.Counter(event["name"] for event in work)
        self.assertGreaterEqual(counts.most_common(1)[0][1], STEPS)
        kernels = [event for event in work if event["cat"] == "kernel"]
        self.assertTrue(all("flops" in event["args"] for event in kernels if event["name"] != "arguments"))
        # One clock: the queue works between the host's first and last event.
        first = min(event["ts"] for event in host)
        last = max(event["ts"] + event["dur"] for event in host)
        self.assertGreater(work[0]["ts"], first - TOLERANCE_US)
        self.assertLess(work[-1]["ts"], last + TOLERANCE_US)

    def test_every_device(self):
        devices = usable_devices()
        self.assertTrue(devices)
        for device in devices:
            for options in ((), ("--no-jit",)):
                with self.subTest(device=device, options=options):
                    self.check_device(device, *options)

    def test_a_file_that_cannot_be_written_is_said(self):
        env = {**os.environ, "TUFF_PROFILE": str(self.folder / "nowhere" / "trace.json")}
        result = subprocess.run([TUFF, "train", "digits", "--steps", "1", "--device", "CPU", "--json"],
                                capture_output=True, text=True, env=env, cwd=self.folder, timeout=280, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("TUFF_PROFILE", result.stderr)
        self.assertIn("nowhere", result.stderr)


if __name__ == "__main__":
    TUFF = sys.argv[1]
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
