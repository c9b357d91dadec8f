#!/usr/bin/env python3
"""That raw_replay runs, checks results and reports; never how long anything took.

Usage: raw_replay_test.py PATH_OF_RAW_REPLAY [unittest options]
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
FIELDS = {"event": str, "bench": str, "device": str, "driver": str, "work": str, "kernels": int, "inputs": int,
          "barriers": int, "replays": int, "wall_us_median": float, "host_us_median": float,
          "host_behind_us_median": float,
          "driver_submit_us_median": float, "raw_wall_us_median": float, "ratio_to_raw": float,
          "in_flight_us_median": float, "patched_words": int, "copy_us_median": float, "checked": bool}


class RawReplay(unittest.TestCase):
    def run_program(self, *arguments, **env):
        outside = {k: v for k, v in os.environ.items() if not k.startswith("TUFF_")}
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=folder,
                                  timeout=120, check=False, env={**outside, "TUFF_CACHE_DIR": folder, **env})

    def expect(self, code, *arguments, **env):
        result = self.run_program(*arguments, **env)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        return result

    def replay(self, *arguments, **env):
        row = json.loads(self.expect(0, "--replays", 5, "--json", *arguments, **env).stdout)
        self.assertEqual({k: type(v) for k, v in row.items()}, FIELDS)
        self.assertEqual((row["event"], row["bench"], row["replays"], row["checked"]), ("done", "replay", 5, True))
        for field in ("wall_us_median", "host_us_median", "host_behind_us_median", "raw_wall_us_median",
                      "ratio_to_raw"):
            self.assertGreater(row[field], 0)
        return row

    def usable(self, kind):
        return self.run_program("--device", kind, "--kernels", 1, "--replays", 1).returncode == 0

    def test_every_device(self):
        kinds = [kind for kind in ("CPU", "VULKAN") if self.usable(kind)]
        if not kinds:
            self.skipTest("there is no device that computes")
        for kind in kinds:
            for work, kernels in (("tiny", 20), ("custom", 12), ("empty", 9), ("tiny", 1)):
                row = self.replay("--device", kind, "--kernels", kernels, "--work", work)
                self.assertEqual((row["device"].split(":")[0], row["kernels"], row["work"]), (kind, kernels, work))
                self.assertEqual((row["inputs"], row["barriers"]), (min(8, kernels), kernels - 1))
            self.assertEqual(self.replay("--device", kind, "--kernels", 3, "--inputs", 0)["inputs"], 0)

    def test_the_emulated_gpu_one_by_one_and_in_flight(self):
        for environment in ({}, {"AMD_AQL": "1"}):
            row = self.replay("--device", "AMD", "--kernels", 10, AMD_IFACE="MOCK", **environment)
            self.assertEqual(row["patched_words"], 8)

    def test_the_emulated_nvidia_gpu(self):
        row = self.replay("--device", "NV", "--kernels", 10, NV_IFACE="MOCK")
        self.assertEqual((row["patched_words"], row["barriers"]), (8, 9))

    def test_text(self):
        if not self.usable("CPU"):
            self.skipTest("the CPU device needs a C compiler")
        result = self.expect(0, "--device", "CPU", "--kernels", 10, "--replays", 3, TUFF_THREADS="1")
        self.assertIn("10 dependent tiny kernels", result.stdout)

    def test_errors(self):
        for code, wanted, arguments in ((2, "--inputs 9", ["--inputs", 9, "--kernels", 4]),
                                        (2, "--work", ["--work", "huge"]), (2, "--kernels", ["--kernels", 0]),
                                        (2, "--replays", ["--replays", "many"]), (2, "NULL", ["--device", "NULL"]),
                                        (1, "TPU", ["--device", "TPU"]),
                                        (1, "did you mean CPU?", ["--device", "CUP"])):
            self.assertIn(wanted, self.expect(code, *arguments).stderr)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
