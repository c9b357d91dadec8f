#!/usr/bin/env python3
"""The program `tuff` from outside: exit codes, help, JSON, bad input, Ctrl-C.

Usage: cli_test.py PATH_OF_TUFF [unittest options]
Trainings run on the NULL device, which computes nothing, so that this needs no compiler and no GPU.
"""
import csv
import gzip
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TUFF = None
COMMANDS = [[], ["devices"], ["check"], ["train"], ["train", "gpt"], ["train", "digits"], ["train", "copy"], ["generate"], ["bench"],
            ["bench", "matmul"], ["bench", "softmax"], ["bench", "train"], ["bench", "compile"], ["tune"],
            ["bringup"], ["cache"], ["cache", "info"], ["cache", "list"], ["cache", "prune"], ["cache", "clear"],
            ["cache", "verify"], ["emu"], ["emu", "run"], ["inspect"], ["convert"], ["run"], ["chat"], ["perplexity"], ["finetune"], ["merge"], ["quantize"], ["serve"], ["tokenize"], ["docs"]]
TINY = ["--layers", "1", "--heads", "2", "--embed", "8", "--context", "8", "--batch", "2"]


class TuffTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("TUFF_") and k != "NO_COLOR"}
        self.env["TUFF_CACHE_DIR"] = str(self.folder / "cache")

    def tuff(self, *arguments, **env):
        return subprocess.run([TUFF, *map(str, arguments)], capture_output=True, cwd=self.folder,
                              env={**self.env, **env}, timeout=120, check=False)

    def expect(self, code, *arguments, **env):
        result = self.tuff(*arguments, **env)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        return result

    def expect_error(self, code, wanted, *arguments, **env):
        """One clear line on stderr (a usage error adds where to look) and nothing on stdout."""
        result = self.expect(code, *arguments, **env)
        lines = result.stderr.decode().splitlines()
        self.assertIn(wanted, lines[0])
        self.assertTrue(lines[0].startswith("tuff: "), lines)
        self.assertLessEqual(len(lines), 1 if code == 1 else 2, lines)
        self.assertEqual(result.stdout, b"")
        return lines[0]

    def rows(self, result):
        return [json.loads(line) for line in result.stdout.decode().splitlines()]

    def usable(self, kind):
        rows = self.rows(self.expect(0, "devices", "--json", TUFF_DEVICE="NULL"))
        return any(row["usable"] for row in rows if row["kind"] == kind)

    def cpu_usable(self):
        """For what the NULL device would answer with nonsense."""
        return self.usable("CPU")

    def files(self):
        return sorted(p.name for p in self.folder.iterdir() if p.name != "cache")


class Usage(TuffTest):
    def test_every_command_has_help(self):
        for command in COMMANDS:
            for flag in ("--help", "-h"):
                result = self.expect(0, *command, flag)
                self.assertIn(b"Usage: tuff", result.stdout)
                self.assertEqual(result.stderr, b"")

    def test_examples_name_options_that_there_are(self):
        for command in COMMANDS:
            text = self.expect(0, *command, "--help").stdout.decode()
            self.assertEqual(text.count("Examples:\n"), 1, text)
            for line in re.findall(r"^  (?:TUFF_\w+=\S+ )?tuff (.*)$", text.split("Examples:")[-1], re.M):
                words = line.split()
                depth = 2 if words[0] in ("train", "bench", "cache", "emu") else 1
                named = self.expect(0, *words[:depth], "--help").stdout.decode()
                for word in words[depth:]:
                    if word.startswith("--"):
                        self.assertRegex(named, rf"(?m)^  {word}\b", line)

    def test_version(self):
        self.assertRegex(self.expect(0, "--version").stdout, rb"^tuff \d+\.\d+\.\d+\n$")

    def test_usage_errors(self):
        for arguments in ([], ["no-such-command"], ["train"], ["train", "gpt", "--no-such-option"],
                          ["train", "gpt", "--steps", "0"], ["train", "gpt", "--steps", "-5"],
                          ["train", "gpt", "--steps", "many"], ["train", "gpt", "--dropout", "1.5"],
                          ["train", "gpt", "--lr", "nan"], ["train", "gpt", "--batch", "99999999999999999999"],
                          ["train", "digits", "--steps", "3", "--epochs", "2"], ["docs"], ["docs", "nothing"],
                          ["train", "gpt", "--layers"], ["bench"], ["bench", "replay"]):
            self.expect_error(2, "", *arguments)

    def test_usage_errors_name_what_was_wrong(self):
        for wanted, arguments in (
                ('there is no command "foo"; there are devices, bringup, ', ["foo"]),
                ('there is no command "trian"; there are ', ["trian", "gpt"]),
                ("; did you mean train?", ["trian"]),
                ('there is no command "gtp"; there are gpt, digits, copy; did you mean gpt?', ["train", "gtp"]),
                ("there is no option --stpes; did you mean --steps?", ["train", "gpt", "--stpes", "3"]),
                ("there is no option --stpes; did you mean --steps?", ["train", "gpt", "--stpes=3"]),
                ("there is no option -z", ["devices", "-z"]),
                ("there is no option --devise; did you mean --device?", ["check", "--devise", "CPU", "--list"]),
                ('"surplus" is one argument too many', ["devices", "surplus"]),
                ("--timeout: x is no number from ", ["check", "--timeout", "x"]),
                ("--timeout: -1 is no number from ", ["check", "--timeout", "-1"]),
                ("--jobs: ", ["check", "--jobs", "99999"]), ("--seed = x", ["check", "--seed", "x"]),
                ("--seconds: nan is no number from ", ["bench", "matmul", "--seconds", "nan"]),
                ("--seconds: nan is no number from ", ["tune", "matmul", "--seconds", "nan"]),
                ("workload: foo not in ", ["tune", "foo"]), ("model: foo not in ", ["bench", "train", "foo"]),
                ("name: foo is none of env, ", ["docs", "foo"]), ("\"lunch\"", ["bringup", "--until", "lunch"]),
                ("no case matches 'nope'", ["check", "--filter", "nope"])):
            self.expect_error(2, wanted, *arguments)

    def test_devices_that_there_are_not(self):
        for command in (["train", "gpt"], ["bench", "matmul"], ["tune", "matmul"]):
            self.expect_error(1, 'unknown device "CUP": known kinds are ', *command, "--device", "CUP")
            self.expect_error(1, "did you mean CPU?", *command, "--device", "CUP")
            self.expect_error(1, "CPU:7: there is one CPU device", *command, "--device", "CPU:7")
        self.expect_error(3, 'there is no device "XYZ"; there are ', "check", "--device", "XYZ")

    def test_files_that_there_are_not(self):
        for arguments in (["inspect", "missing"], ["convert", "missing", "to.npz"], ["run", "missing"], ["train", "gpt", "--text", "missing"],
                          ["train", "digits", "--idx", "missing"], ["train", "gpt", "--resume", "missing"],
                          ["generate", "--load", "missing"], ["check", "--replay", "missing"],
                          ["check", "--graph", "missing"], ["--tuned", "missing", "devices"],
                          ["emu", "run", "missing", "--kernel", "k", "--args", "a"]):
            self.expect_error(1, "missing", *arguments)

    def test_options_that_do_not_fit_each_other(self):
        self.expect_error(2, "--heads 3 does not divide --embed 8", "train", "gpt", "--heads", 3, "--embed", 8)
        (self.folder / "short.txt").write_text("only a few letters")
        self.expect_error(2, "--context 64", "train", "gpt", "--text", "short.txt", "--device", "NULL")


class Devices(TuffTest):
    FIELDS = {"name": str, "kind": str, "usable": bool, "reason": str, "default": bool, "software": bool,
              "description": str, "driver": str, "api_version": str, "uuid": str, "memory_bytes": int,
              "features": dict}

    def test_json(self):
        rows = self.rows(self.expect(0, "devices", "--json"))
        for row in rows:
            self.assertEqual({k: type(v) for k, v in row.items()}, self.FIELDS)
            self.assertTrue(row["usable"] or row["reason"])
        self.assertIn("NULL", [row["kind"] for row in rows])
        self.assertLessEqual(sum(row["default"] for row in rows), 1)

    def test_default_follows_the_environment(self):
        rows = self.rows(self.expect(0, "devices", "--json", TUFF_DEVICE="null"))
        self.assertEqual([row["kind"] for row in rows if row["default"]], ["NULL"])

    def test_unknown_default(self):
        result = self.expect(1, "devices", TUFF_DEVICE="TPU")
        self.assertIn(b"NULL", result.stdout)
        self.assertIn(b"TPU", result.stderr)

    def test_no_colours_in_a_pipe_or_under_no_color(self):
        self.assertNotIn(b"\x1b", self.expect(0, "devices").stdout)
        self.assertIn(b"\x1b[1m", self.on_terminal({}))
        self.assertNotIn(b"\x1b", self.on_terminal({"NO_COLOR": "1"}))

    def on_terminal(self, env):
        ours, theirs = pty.openpty()
        with subprocess.Popen([TUFF, "devices"], stdout=theirs, env={**self.env, **env}) as process:
            os.close(theirs)
            out = b""
            try:
                while piece := os.read(ours, 65536):
                    out += piece
            except OSError:
                pass  # the other end was closed
            self.assertEqual(process.wait(), 0)
        os.close(ours)
        return out


class Training(TuffTest):
    DONE = ["device", "driver", "steps", "train_loss", "val_loss", "step_ms_median", "host_us_median",
            "kernels_per_step", "submits_per_step", "compile_ms", "schedule_ms", "lower_ms", "render_ms",
            "compiler_ms", "load_ms", "seconds", "corpus_hash"]

    def test_gpt_json(self):
        rows = self.rows(self.expect(0, "train", "gpt", "--device", "NULL", "--steps", 5, "--sample", 9, "--json", *TINY))
        self.assertEqual([r["step"] for r in rows if r["event"] == "step"], [1, 2, 3, 4, 5])
        self.assertEqual([r["step"] for r in rows if r["event"] == "validation"], [0, 5])
        self.assertEqual(len(next(r for r in rows if r["event"] == "sample")["text"]), 9)
        done = rows[-1]
        self.assertEqual(done["event"], "done")
        for field in self.DONE:
            self.assertIn(field, done)
        self.assertEqual((done["steps"], done["submits_per_step"]), (5, 1))
        self.assertGreater(done["kernels_per_step"], 0)
        self.assertEqual(self.files(), [])  # no curve unless asked for

    def test_gpt_text_and_curve(self):
        result = self.expect(0, "train", "gpt", "--device", "NULL", "--steps", 3, "--sample", 0, *TINY)
        self.assertIn(b"validation loss", result.stdout)
        self.assertTrue((self.folder / "tuff-gpt-loss.csv").exists())
        rows = self.rows(self.expect(0, "train", "gpt", "--device", "NULL", "--steps", 3, "--json", "--out", "new/folder",
                                     *TINY))
        with (self.folder / "new/folder/tuff-gpt-loss.csv").open(newline="", encoding="utf-8") as file:
            curve = list(csv.DictReader(file))
        self.assertEqual([r["step"] for r in curve], ["0", "1", "2", "3"])
        for event, field, column in (("step", "loss", "loss"), ("validation", "val_loss", "validation_loss")):
            self.assertEqual([(int(r["step"]), float(r[column])) for r in curve if r[column]],
                             [(r["step"], r[field]) for r in rows if r["event"] == event])

    def test_without_jit(self):
        rows = self.rows(self.expect(0, "train", "gpt", "--device", "NULL", "--steps", 3, "--no-jit", "--json", *TINY))
        self.assertGreater(rows[-1]["kernels_per_step"], 0)

    def test_digits_and_copy_json(self):
        if not self.cpu_usable():
            self.skipTest("the CPU device needs a C compiler")
        rows = self.rows(self.expect(0, "train", "digits", "--device", "CPU", "--steps", 3, "--batch", 8, "--json"))
        self.assertIn("accuracy", rows[-1])
        self.assertIn("softmax_regression_accuracy", rows[-1])
        self.assertEqual(rows[-1]["tested_images"], rows[-1]["test_images"])
        for count in (0, 11):
            done = self.rows(self.expect(0, "train", "digits", "--device", "CPU", "--steps", 3, "--batch", 8,
                                         "--test-images", count, "--json"))[-1]
            self.assertEqual((done["tested_images"], "accuracy" in done), (count, count > 0))
        rows = self.rows(self.expect(0, "train", "copy", "--device", "NULL", "--steps", 3, "--json"))
        self.assertIn("accuracy", rows[-1])

    def test_same_seed_same_text(self):
        def sample(seed):
            return self.rows(self.expect(0, "train", "gpt", "--device", "NULL", "--steps", 1, "--sample", 30, "--seed",
                                         seed, "--json", *TINY))[-2]["text"]
        self.assertEqual(sample(1), sample(1))


class BenchKernels(TuffTest):
    """That every row runs, is right and reports; never how long anything took."""
    SIZES = {"matmul": "5,7x3x11,2x4x5x6", "gemv": "9,17x31", "conv": "2x3x8x9x5x3", "elementwise": "1025", "broadcast": "5x7",
             "reduce": "1025", "softmax": "9x33", "layernorm": "9x33", "attention": "1x2x9x8",
             "attention_backward": "1x2x9x8", "transpose": "17x31",
             "gather": "50x8x20", "scatter": "20x8x50", "sort": "300", "topk": "300x7"}
    FIELDS = {"bench": str, "device": str, "driver": str, "dtype": str, "shape": str, "transposed": str, "weights": str,
              "kernels": int,
              "ms_median": float, "ms_min": float, "ms_max": float, "device_us_median": float, "correct": bool}
    LIMIT = {"limit": float, "fraction_of_limit": float}

    def test_every_row(self):
        if not self.cpu_usable():
            self.skipTest("the CPU device needs a C compiler")
        listed = self.expect(0, "bench", "--help").stdout.decode()
        for bench, sizes in self.SIZES.items():
            self.assertIn(f"  {bench} ", listed)
            for kind in [kind for kind in ("CPU", "VULKAN") if self.usable(kind)]:
                rows = self.rows(self.expect(0, "bench", bench, "--device", kind, "--sizes", sizes, "--seconds", 0, "--json"))
                self.assertEqual([r["shape"] for r in rows], ["x".join(self.completed(bench, s)) for s in sizes.split(",")])
                for row in rows:
                    unit = "gflops" if bench in ("matmul", "conv", "attention", "attention_backward") else "gbps"
                    self.assertEqual({k: type(v) for k, v in row.items()}, self.FIELDS | {unit: float})
                    self.assertEqual((row["bench"], row["correct"], row["device"].split(":")[0]), (bench, True, kind))
                    self.assertGreater(row["kernels"], 0)

    def test_limits(self):
        if not self.cpu_usable():
            self.skipTest("limits are the CPU's")
        for bench, unit in (("matmul", "gflops"), ("reduce", "gbps")):
            row, = self.rows(self.expect(0, "bench", bench, "--device", "CPU", "--sizes", "64", "--seconds", 0.01, "--json"))
            self.assertEqual({k: type(v) for k, v in row.items()}, self.FIELDS | self.LIMIT | {unit: float})

    @staticmethod
    def completed(bench, size):
        extents = size.split("x")
        return extents * {"matmul": 3, "gemv": 2}.get(bench, 1) if len(extents) == 1 else extents

    def test_operands(self):
        if not self.cpu_usable():
            self.skipTest("the CPU device needs a C compiler")
        for arguments in (["--transposed", "a"], ["--transposed", "ab"], ["--dtype", "f16"], ["--dtype", "bf16", "--transposed", "b"]):
            row, = self.rows(self.expect(0, "bench", "matmul", "--device", "CPU", "--sizes", "33x17x65", "--seconds", 0, "--json",
                                         *arguments))
            self.assertTrue(row["correct"])
        result = self.expect(0, "bench", "reduce", "--device", "CPU", "--sizes", "100", "--seconds", 0)
        self.assertIn(b"right", result.stdout)

    def test_packed_weights(self):
        for kind in [kind for kind in ("CPU", "VULKAN") if self.usable(kind)]:
            for bench, sizes, weights in (("gemv", "9x512", "Q4_0"), ("gemv", "5x256", "Q6_K"), ("matmul", "33x17x512", "Q4_K"),
                                          ("matmul", "3x20x96", "MXFP4")):
                row, = self.rows(self.expect(0, "bench", bench, "--device", kind, "--sizes", sizes, "--weights", weights,
                                             "--seconds", 0, "--json"))
                self.assertEqual((row["weights"], row["correct"]), (weights, True))
            on = ("--device", kind, "--seconds", 0)
            rows = self.rows(self.expect(0, "bench", "gemv", "--weights", "Q4_K", *on, "--json"))
            self.assertEqual([row["shape"] for row in rows], ["4096x4096"], "1000x4099 has no whole blocks")
            self.expect_error(1, '"Q9" is no type of packed weights; Q4_0', "bench", "gemv", "--weights", "Q9", *on, "--json")
            self.expect_error(1, "which does not divide rows of 40", "bench", "gemv", "--sizes", "4x40", "--weights", "Q8_0",
                              *on, "--json")
            self.expect_error(1, "not of 2", "bench", "matmul", "--sizes", "2x8x8x32", "--weights", "Q8_0", *on, "--json")
            self.expect_error(2, "--weights", "bench", "gemv", "--weights", "Q8_0", "--peer", "numpy", *on)

    def test_hand_written_peers(self):
        if not self.usable("VULKAN"):
            self.skipTest("the hand-written kernels take a Vulkan device")
        for bench, sizes in (("matmul", "64x128x24"), ("elementwise", "8192"), ("reduce", "65536"), ("softmax", "3x64"),
                             ("layernorm", "3x64")):
            row, = self.rows(self.expect(0, "bench", bench, "--device", "VULKAN", "--sizes", sizes, "--peer", "glsl",
                                         "--seconds", 0, "--json"))
            self.assertEqual((row["bench"], row["peer"], row["correct"]), (bench, "glsl", True))
            self.assertAlmostEqual(row["ratio"], row["peer_ms_median"] / row["ms_median"])
        self.expect_error(1, "multiple", "bench", "matmul", "--device", "VULKAN", "--sizes", "63", "--peer", "glsl", "--json")
        self.expect_error(1, "hand-written", "bench", "gemv", "--device", "VULKAN", "--sizes", "64", "--peer", "glsl", "--json")

    def test_training_steps(self):
        if not self.cpu_usable():
            self.skipTest("the CPU device needs a C compiler")
        row, = self.rows(self.expect(0, "bench", "train", "mlp", "--device", "CPU", "--seconds", 0, "--json"))
        self.assertEqual((row["bench"], row["shape"], row["correct"]), ("train", "mlp", True))
        self.assertGreater(row["kernels_per_step"], 0)

    def test_compiling(self):
        if not self.cpu_usable():
            self.skipTest("the CPU device needs a C compiler")
        cold, warm = self.rows(self.expect(0, "bench", "compile", "mlp", "--device", "CPU", "--slowest", 3, "--json"))
        self.assertEqual((cold["cache"], cold["kernels_from_disk"]), ("cold", 0))
        self.assertEqual((warm["cache"], warm["kernels_from_disk"]), ("warm", warm["kernels_compiled"]))
        self.assertEqual(len(cold["slowest"]), 3)
        self.assertIn("linearize", cold["passes_ms"])
        self.assertEqual(self.files(), [])

    def test_usage_errors(self):
        for sizes in ("0", "4x", "4y4", "1x2", "-3", "9999999999999999999999", "4,,4"):
            self.expect_error(2, "--sizes", "bench", "matmul", "--device", "CPU", "--sizes", sizes)
        self.expect_error(2, "--dtype", "bench", "matmul", "--dtype", "f64")
        self.expect_error(2, "model", "bench", "train", "resnet")
        self.expect_error(1, "peer.py", "bench", "reduce", "--device", "CPU", "--sizes", "10", "--peer", "numpy")


class BadInput(TuffTest):
    def gpt(self, wanted, *arguments, **env):
        self.expect_error(1, wanted, "train", "gpt", "--device", "NULL", "--steps", 2, *arguments, *TINY, **env)
        self.assertNotIn("tuff-gpt-loss.csv", self.files())

    def test_texts(self):
        self.gpt("missing.txt", "--text", "missing.txt")
        (self.folder / "empty.txt").touch()
        self.gpt("empty", "--text", "empty.txt")
        (self.folder / "folder").mkdir()
        self.gpt("", "--text", "folder")
        self.gpt("/dev/zero", "--text", "/dev/zero")

    def test_devices(self):
        for name in ("TPU", "VULKAN:99", "VULKAN:uuid=00", "CPU:7", "NULL:x"):
            self.expect_error(1, "", "train", "gpt", "--steps", 1, "--device", name, *TINY)
        self.expect_error(1, "TPU", "train", "gpt", "--steps", 1, *TINY, TUFF_DEVICE="TPU")
        self.assertNotIn("tuff-gpt-loss.csv", self.files())

    def test_folders_that_cannot_be_written(self):
        (self.folder / "file").touch()
        self.gpt("TUFF_CACHE_DIR", TUFF_CACHE_DIR=str(self.folder / "file" / "cache"))
        self.gpt("no/such/folder/x.csv", "--curve", "no/such/folder/x.csv")
        self.gpt("file", "--out", "file/below")

    def test_a_variable_with_a_bad_value(self):
        self.gpt("TUFF_CACHE", TUFF_CACHE="perhaps")

    def test_idx(self):
        def digits(wanted):
            self.expect_error(1, wanted, "train", "digits", "--device", "NULL", "--steps", 2, "--idx", "idx")
        digits("idx")
        idx = self.folder / "idx"
        idx.mkdir()
        digits("train-images-idx3-ubyte")
        images = b"\0\0\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (2, 28, 28)) + bytes(2 * 784)
        labels = b"\0\0\x08\x01" + (2).to_bytes(4, "big") + b"\1\2"
        for prefix in ("train", "t10k"):
            (idx / f"{prefix}-images-idx3-ubyte").write_bytes(images)
            (idx / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
        if self.cpu_usable():
            self.expect(0, "train", "digits", "--device", "CPU", "--steps", 2, "--batch", 2, "--json", "--idx", "idx")
        absurd = b"\0\0\x08\x03" + b"\xff" * 12
        for damaged in (images[:-1], images[:3], b"", absurd, images + b"x"):
            (idx / "train-images-idx3-ubyte").write_bytes(damaged)
            digits("train-images-idx3-ubyte")


class Interrupt(TuffTest):
    def test_ends_within_a_second_and_keeps_what_was_reached(self):
        command = [TUFF, "train", "gpt", "--device", "NULL", "--steps", "1000000", "--json", "--curve", "c.csv", *TINY]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder,
                              env=self.env) as process:
            for line in process.stdout:
                if json.loads(line).get("step", 0) >= 20:
                    break
            process.send_signal(signal.SIGINT)
            begin = time.monotonic()
            out, err = process.communicate(timeout=20)
        self.assertLess(time.monotonic() - begin, 2)
        self.assertEqual(process.returncode, 130)
        done = json.loads(out.decode().splitlines()[-1])
        self.assertEqual((done["event"], done["interrupted"]), ("done", True))
        self.assertGreaterEqual(done["steps"], 20)
        self.assertIn(b"interrupted", err)
        self.assertEqual((self.folder / "c.csv").read_text().splitlines()[-1].split(",")[0], str(done["steps"]))

    def test_seconds_end_a_training_as_its_last_step_does(self):
        train = ["train", "gpt", "--device", "NULL", "--steps", "1000000", *TINY]
        rows = self.rows(self.expect(0, *train, "--seconds", "0.2", "--save", "a.safetensors", "--json"))
        done = next(r for r in rows if r["event"] == "done")
        self.assertEqual((done["out_of_time"], done["interrupted"]), (True, False))
        self.assertEqual([r["step"] for r in rows if r["event"] in ("checkpoint", "validation")][-2:], [done["steps"]] * 2)
        done = self.rows(self.expect(0, *train, "--seconds", "1e-9", "--json"))[-1]  # one step in any case
        self.assertEqual((done["steps"], done["out_of_time"]), (1, True))
        self.assertIn(b"--seconds", self.expect(0, *train, "--seconds", "0.1").stdout)
        for wrong in ("-1", "nan", "x"):
            self.assertIn(wrong.encode(), self.expect(2, *train, "--seconds", wrong).stderr)

    def test_ends_compilers_too(self):
        if not self.cpu_usable():
            self.skipTest("the CPU device needs a C compiler")
        command = [TUFF, "train", "gpt", "--device", "CPU", "--json"]
        for delay in (0.6, 1.0):  # the first kernels are being compiled: the cache is empty
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder,
                                  env=self.env) as process:
                time.sleep(delay)
                process.send_signal(signal.SIGINT)
                begin = time.monotonic()
                _, err = process.communicate(timeout=20)
            self.assertLess(time.monotonic() - begin, 2)
            self.assertEqual(process.returncode, 130)
            self.assertEqual(len(err.decode().splitlines()), 1)


class Checkpoints(TuffTest):
    """What is the same for every device; resumed_test.py compares losses."""
    TRAIN = ["train", "gpt", "--device", "NULL", "--sample", 0]

    def train(self, *arguments):
        return self.rows(self.expect(0, *self.TRAIN, "--json", *arguments))

    def test_saves_and_goes_on(self):
        rows = self.train("--steps", 5, "--save", "a.safetensors", "--save-every", 2, "--seed", 9, "--lr", "0.01", *TINY)
        self.assertEqual([(r["step"], r["file"]) for r in rows if r["event"] == "checkpoint"],
                         [(n, "a.safetensors") for n in (2, 4, 5)])
        rows = self.train("--steps", 8, "--resume", "a.safetensors", "--save", "b.safetensors")
        self.assertEqual([r["step"] for r in rows if r["event"] == "step"], [6, 7, 8])
        self.assertEqual([r["step"] for r in rows if r["event"] == "checkpoint"], [8])
        done = rows[-1]
        self.assertEqual([done[k] for k in ("resumed_at", "steps", "embed", "seed", "interrupted")], [5, 8, 8, 9, False])
        self.train("--resume", "b.safetensors", "--embed", 8)  # nothing is left to do
        self.assertIn(b"saved to", self.expect(0, *self.TRAIN, "--steps", 9, "--resume", "b.safetensors", "--save",
                                               "b.safetensors").stdout)
        self.assertEqual(self.files(), ["a.safetensors", "b.safetensors", "tuff-gpt-loss.csv"])

    def test_other_options_than_the_files(self):
        self.train("--steps", 2, "--save", "a.safetensors", *TINY)
        for name, value, saved in (("embed", 16, 8), ("seed", 7, 1), ("lr", "0.5", "0.001"), ("dropout", "0.5", 0)):
            self.expect_error(2, f"--{name} {value}: a.safetensors was trained with {saved}; leave the option out",
                              *self.TRAIN, "--resume", "a.safetensors", f"--{name}", value)
        self.expect_error(1, "2 steps are done there, more than the 1", *self.TRAIN, "--steps", 1, "--resume",
                          "a.safetensors", "--json")
        self.expect_error(1, "'gpt', not 'copy'", "train", "copy", "--device", "NULL", "--resume", "a.safetensors")
        (self.folder / "text.txt").write_text("another text " * 100)
        self.expect_error(1, "vocabulary", *self.TRAIN, "--text", "text.txt", "--resume", "a.safetensors", "--json")

    def test_files_and_places_that_will_not_do(self):
        self.expect_error(2, ".safetensors", *self.TRAIN, "--save", "a.npz")
        self.expect_error(2, "--save", *self.TRAIN, "--save-every", 3)
        self.expect_error(1, "No such file", *self.TRAIN, "--resume", "missing.safetensors")
        self.expect_error(1, "no/such", *self.TRAIN, "--json", "--steps", 2, "--save", "no/such/a.safetensors", *TINY)
        self.train("--steps", 2, "--save", "a.safetensors", *TINY)
        whole = (self.folder / "a.safetensors").read_bytes()
        (self.folder / "cut.safetensors").write_bytes(whole[:-3])
        self.expect_error(1, "cut.safetensors", *self.TRAIN, "--resume", "cut.safetensors")

    def test_settings_that_a_file_claims(self):
        self.train("--steps", 2, "--save", "a.safetensors", *TINY)
        whole = (self.folder / "a.safetensors").read_bytes()
        end = 8 + int.from_bytes(whole[:8], "little")
        for name, value in (("heads", "0"), ("layers", "1000000"), ("embed", "4000000000"), ("batch", "4000000000"),
                            ("steps", "0"), ("lr", "nan"), ("warmup_steps", "4000000000")):
            header = json.loads(whole[8:end])
            header["__metadata__"]["setting." + name] = value
            text = json.dumps(header).encode()
            (self.folder / "b.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + whole[end:])
            for command in (["train", "gpt", "--resume"], ["generate", "--load"]):
                self.expect_error(1, f"b.safetensors: its {name} is {value}; it has to be from", *command,
                                  "b.safetensors", "--device", "NULL")

    def test_what_is_no_number_is_warned_of_once(self):
        if not self.cpu_usable():
            self.skipTest("the CPU device needs a C compiler")
        run = ["train", "gpt", "--device", "CPU", "--sample", 0]
        self.assertEqual(self.expect(0, *run, "--steps", 2, "--save", "a.safetensors", "--json", *TINY).stderr, b"")
        whole = bytearray((self.folder / "a.safetensors").read_bytes())
        end = 8 + int.from_bytes(whole[:8], "little")
        first = json.loads(whole[8:end])["model.lnf.bias"]["data_offsets"][0]
        whole[end + first:end + first + 4] = b"\x00\x00\xc0\x7f"
        (self.folder / "b.safetensors").write_bytes(whole)
        out = self.expect(0, "generate", "--load", "b.safetensors", "--device", "CPU", "--chars", 4)
        self.assertEqual(out.stderr.decode().splitlines(), [
            "tuff: warning: character 1: the model's logits are nan, so what it writes means nothing; weights: nan in "
            "lnf.bias"])
        out = self.expect(0, *run, "--steps", 5, "--resume", "b.safetensors", "--json")
        self.assertEqual(len(out.stderr.splitlines()), 1)
        self.assertIn(b"tuff: warning: step 3: the loss is nan; weights: nan in ", out.stderr)
        self.assertEqual([(r["step"], r["loss"]) for r in self.rows(out) if r["event"] == "not_finite"], [(3, "nan")])

    def test_a_full_disk(self):
        def train(code, write):
            return self.expect(code, *self.TRAIN, "--json", "--steps", 9, "--save", "a.safetensors", "--save-every", 3, *TINY,
                               TUFF_WRITE_FAULT=f"file:a.safetensors,write:{write},full:1000")
        result = train(0, 2)  # the one after it is written
        self.assertEqual([(r["event"], r["step"]) for r in self.rows(result) if r["event"].startswith("checkpoint")],
                         [("checkpoint", 3), ("checkpoint_failed", 6), ("checkpoint", 9)])
        text = result.stderr.decode()
        self.assertIn("tuff: step 6 is not saved: ", text)
        self.assertIn("No space left on device", text)
        self.assertIn("; the checkpoint of step 3 is whole; the training goes on", text)
        self.assertIn("step 9 is not saved: ", train(1, 3).stderr.decode())
        self.assertEqual(self.files(), ["a.safetensors"])
        self.assertEqual(self.train("--resume", "a.safetensors")[-1]["resumed_at"], 6)

    def test_an_interrupt_saves(self):
        command = [TUFF, *map(str, self.TRAIN), "--steps", "1000000", "--json", "--save", "a.safetensors", *TINY]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder,
                              env=self.env) as process:
            for line in process.stdout:
                if json.loads(line).get("step", 0) >= 20:
                    break
            process.send_signal(signal.SIGINT)
            out = process.communicate(timeout=20)[0].splitlines()
            if not out[0].startswith(b'{"event"'):  # it has been read in part
                del out[0]
            rows = [json.loads(line) for line in out]
        self.assertEqual(process.returncode, 130)
        done, saved = rows[-1], next(r for r in rows if r["event"] == "checkpoint")
        self.assertEqual((done["interrupted"], saved["step"]), (True, done["steps"]))
        rows = self.train("--resume", "a.safetensors", "--steps", saved["step"] + 1)
        self.assertEqual([r["step"] for r in rows if r["event"] == "step"], [saved["step"] + 1])


class Generate(TuffTest):
    def setUp(self):
        super().setUp()
        if not self.cpu_usable():
            self.skipTest("the NULL device would write nonsense")
        self.expect(0, "train", "gpt", "--device", "CPU", "--steps", 30, "--sample", 0, "--json", "--save", "a.safetensors",
                    "--lr", "0.01", *TINY)
        self.command = ["generate", "--load", "a.safetensors", "--device", "CPU"]

    def text(self, *arguments):
        return self.expect(0, *self.command, *arguments).stdout.decode()

    def test_writes_what_seed_and_temperature_say(self):
        text = self.text("--prompt", "The ", "--chars", 40)
        self.assertTrue(text.startswith("The ") and text.endswith("\n") and len(text) == 45, text)
        self.assertEqual(self.text("--prompt", "The ", "--chars", 40), text)
        self.assertNotEqual(self.text("--prompt", "The ", "--chars", 40, "--seed", 2), text)
        greedy = self.text("--chars", 20, "--temperature", 0)
        self.assertEqual(self.text("--chars", 20, "--temperature", 0, "--seed", 2), greedy)
        done, = self.rows(self.expect(0, *self.command, "--prompt", "The ", "--chars", 40, "--json"))
        self.assertEqual((done["prompt"] + done["text"] + "\n", done["characters"], done["context"]), (text, 40, 8))

    def test_prompts(self):
        long = "a prompt that is longer than the context of eight"
        self.assertTrue(self.text("--prompt", long, "--chars", 3).startswith(long))
        self.expect_error(2, "--prompt: '\u00e9' at byte 3", *self.command, "--prompt", "caf\u00e9")

    def test_text_comes_as_it_is_made(self):
        with subprocess.Popen([TUFF, *self.command, "--chars", "100000000"], stdout=subprocess.PIPE, cwd=self.folder,
                              env=self.env) as process:
            self.assertEqual(len(process.stdout.read(10)), 10)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130)

    def test_what_will_not_do(self):
        self.expect_error(2, "--load", "generate")
        self.expect_error(1, "No such file", "generate", "--load", "missing.safetensors")
        self.expect_error(2, "--temperature", *self.command, "--temperature", "-1")
        self.expect_error(2, "--chars", *self.command, "--chars", 0)
        self.expect(0, "train", "copy", "--device", "NULL", "--steps", 1, "--json", "--save", "copy.safetensors")
        self.expect_error(1, "'copy', not 'gpt'", "generate", "--load", "copy.safetensors", "--device", "NULL")
        self.expect(0, "convert", "a.safetensors", "plain.npz")
        self.expect_error(1, "no checkpoint", "generate", "--load", "plain.npz", "--device", "CPU")


class Bringup(TuffTest):
    def test_steps_stop_at_the_first_that_fails(self):
        # NULL does nothing: it waits for nobody.
        rows = self.rows(self.expect(1, "bringup", "--device", "NULL", "--json"))
        self.assertEqual([row["step"] for row in rows],
                         ["machine", "find", "open", "memory", "signal", "timestamp", "host wait"])
        self.assertEqual([row["status"] for row in rows], ["passed"] * 6 + ["failed"])

    def test_until_ends_early(self):
        result = self.expect(0, "bringup", "--device", "NULL", "--until", "memory")
        self.assertEqual([line.split()[0] for line in result.stdout.decode().splitlines()],
                         ["machine", "find", "open", "memory"])
        self.expect_error(2, 'the steps are "machine", "find"', "bringup", "--device", "NULL", "--until", "lunch")

    def test_all_parts_of_the_cpu(self):
        if not self.cpu_usable():
            self.skipTest("no C compiler")
        rows = self.rows(self.expect(0, "bringup", "--device", "CPU", "--json", "--fault"))
        self.assertEqual({row["step"]: row["status"] for row in rows},
                         {step: "absent" if step in ("copy queue", "fault") else "passed" for step in
                          ("machine", "find", "open", "memory", "signal", "timestamp", "host wait", "copy", "copy queue",
                           "kernel", "kernels in order", "replay", "suite", "fault")})

    def test_a_device_that_is_not_there(self):
        rows = self.rows(self.expect(1, "bringup", "--device", "XYZ:3", "--json"))
        self.assertEqual([(row["step"], row["status"]) for row in rows], [("machine", "passed"), ("find", "failed")])
        self.assertIn('there is no device "XYZ:3"; there are ', rows[1]["detail"])


class Tune(TuffTest):
    MATMUL = ["tune", "matmul", "--sizes", "48", "--device", "CPU", "--seconds", "1", "--out", "t.json", "--json"]

    def setUp(self):
        super().setUp()
        if not self.cpu_usable():
            self.skipTest("the CPU device needs a C compiler")

    def test_writes_what_a_later_run_takes(self):
        *kernels, done = self.rows(self.expect(0, *self.MATMUL))
        self.assertEqual([row["event"] for row in kernels], ["kernel"])
        self.assertLessEqual(kernels[0]["us"], kernels[0]["heuristic_us"])
        self.assertEqual((done["searched"], done["known"], done["interrupted"]), (1, 0, False))
        (done,) = self.rows(self.expect(0, *self.MATMUL))
        self.assertEqual((done["searched"], done["known"]), (0, 1))
        # Other opts than any heuristic would choose show that they are taken.
        text = (self.folder / "t.json").read_text()
        bench = ["bench", "matmul", "--sizes", "48", "--device", "CPU", "--seconds", "0"]
        chosen = self.expect(0, "--tuned", "t.json", *bench, TUFF_DEBUG="3").stderr.decode()
        self.assertIn(next(iter(json.loads(text)["kernels"].values())), chosen)

    def test_refuses_what_is_damaged_or_foreign(self):
        self.expect(0, *self.MATMUL)
        path = self.folder / "t.json"
        text = path.read_text()
        bench = ["bench", "matmul", "--sizes", "48", "--device", "CPU", "--seconds", "0"]
        foreign = json.loads(text)
        foreign["version"] = 99
        for damaged, wanted in ((text[:-20], "is no file of tuned schedules"), ("", "is no file of tuned schedules"),
                                (text.replace('"cores"', '"horns"'), "damaged"), (json.dumps(foreign), "another version"),
                                (text.replace("tuff tuned", "someone's"), "is no file of tuned schedules")):
            path.write_text(damaged)
            self.expect_error(1, wanted, "--tuned", "t.json", *bench)
            warned = self.expect(0, *bench, TUFF_TUNED="t.json")
            self.assertIn(wanted, warned.stderr.decode())
            self.expect_error(1, wanted, *self.MATMUL)
            self.assertEqual(path.read_text(), damaged)
        path.write_text(text)
        other = self.expect(0, *bench, TUFF_TUNED="t.json", TUFF_THREADS="1")
        self.assertIn("is not used", other.stderr.decode())

    def test_keeps_what_it_found_when_interrupted(self):
        command = [TUFF, "tune", "mlp", "--device", "CPU", "--seconds", "0.5", "--out", "t.json", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder,
                              env=self.env) as process:
            first = json.loads(process.stdout.readline())
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual((first["event"], first["index"]), ("kernel", 1))
        done = json.loads(out.decode().splitlines()[-1])
        self.assertEqual((done["event"], done["interrupted"]), ("done", True))
        self.assertLess(done["searched"], done["kernels"])
        self.assertGreaterEqual(len(json.loads((self.folder / "t.json").read_text())["kernels"]), 1)
        self.expect(0, "--tuned", "t.json", "docs", "env")


class Docs(TuffTest):
    def test_every_table(self):
        for name, wanted in (("env", "TUFF_DEVICE"), ("ops", "| `add` |"), ("devices", "`VULKAN`"),
                             ("help", "--mask-attention"), ("kernels", "softmax"), ("walk", "OpEntryPoint")):
            first = self.expect(0, "docs", name)
            self.assertIn(wanted, first.stdout.decode())
            self.assertEqual(first.stdout, self.expect(0, "docs", name).stdout)


class Readme(unittest.TestCase):
    def test_shows_the_example_that_is_built(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        program = (root / "examples/hello.cpp").read_text(encoding="utf-8")
        readme = (root / "README.md").read_text(encoding="utf-8")
        self.assertIn(program[program.index("int main"):], readme)



class EmulatorTest(TuffTest):
    """`tuff emu run` on code objects that clang makes, as anybody would."""
    SOURCE = """
        __attribute__((device)) unsigned table[4] = {1, 2, 3, 4};
        __attribute__((amdgpu_kernel)) void scale(__attribute__((address_space(1))) float* out,
            const __attribute__((address_space(1))) float* in, float by, int shift) {
          unsigned k = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
          out[k] = in[k + shift] * by;
        }
        __attribute__((amdgpu_kernel)) void collide(__attribute__((address_space(1))) int* out) {
          out[0] = __builtin_amdgcn_workgroup_id_x();
        }
        __attribute__((amdgpu_kernel)) void sizes(__attribute__((address_space(1))) int* out) {
          const __attribute__((address_space(4))) int* packet = __builtin_amdgcn_dispatch_ptr();
          out[__builtin_amdgcn_workitem_id_x()] = packet[3] + table[__builtin_amdgcn_workitem_id_x()];
        }"""

    def setUp(self):
        super().setUp()
        self.object = self.folder / "kernels.o"
        source = self.SOURCE.replace("__attribute__((device)) ", "__attribute__((address_space(1))) ")
        compiler = subprocess.run(
            ["clang-19", "-x", "c", "-", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx1100", "-nogpulib", "-O2",
             "-mcode-object-version=4", "-c", "-o", self.object], input=source.encode(), capture_output=True, check=False)
        self.assertEqual(compiler.returncode, 0, compiler.stderr)

    def write(self, **launch):
        (self.folder / "args.json").write_text(json.dumps(launch))

    def run_kernel(self, code, kernel, *arguments, file=None):
        result = self.expect(code, "emu", "run", file or self.object, "--kernel", kernel, "--args", "args.json",
                             "--json", *arguments)
        return self.rows(result)[0]

    SCALE = {"groups": [2], "group_size": [64],
             "args": [{"buffer": {"dtype": "f32", "count": 128}},
                      {"buffer": {"dtype": "f32", "values": [1, 2, "inf"], "count": 128, "fill": 0.5}},
                      {"f32": 3.0}, {"i32": 0}]}

    def test_results_and_counts(self):
        self.write(**self.SCALE)
        row = self.run_kernel(0, "scale", "--out", "out.json")
        self.assertTrue(row["finished"])
        self.assertEqual(row["findings"], [])
        self.assertEqual(row["buffers"][0]["values"], [3.0, 6.0, None] + [1.5] * 125)
        self.assertTrue(row["buffers"][0]["changed"])
        self.assertFalse(row["buffers"][1]["changed"])
        self.assertEqual(row["counts"]["s_endpgm"], 4)
        self.assertEqual(json.loads((self.folder / "out.json").read_text()), row)
        text = self.expect(0, "emu", "run", self.object, "--kernel", "scale", "--args", "args.json",
                           "--counts").stdout.decode()
        self.assertIn("4 s_endpgm", text)
        self.assertIn("args[0], 128 float32: 3.0 6.0", text)

    def test_profile(self):
        self.write(**self.SCALE)
        plain = self.run_kernel(0, "scale")
        row = self.run_kernel(0, "scale", "--profile", "--chip", "780m", "--out", "out.json")
        self.assertEqual(json.loads((self.folder / "out.json").read_text()), row)
        profile = row.pop("profile")
        self.assertEqual(row, plain)
        self.assertEqual((profile["chip"], profile["waves"]), ("780m", 4))
        self.assertEqual(profile["bytes"], {"loaded": 512, "stored": 512})
        self.assertEqual(profile["lines"], profile["least_lines"])
        self.assertEqual(sum(c["instructions"] for c in profile["classes"].values()), row["instructions"])
        self.assertEqual(sum(i["executed"] for i in profile["instructions"]), row["instructions"])
        self.assertEqual(profile["flops"], 128)
        self.assertGreater(profile["time_us"], max(profile["parts_us"].values()))
        text = self.expect(0, "emu", "run", self.object, "--kernel", "scale", "--args", "args.json",
                           "--profile").stdout.decode()
        self.assertIn("scale on 7900xtx: 2 workgroups, 4 waves of 32", text)
        self.assertRegex(text, r"4 +128 +512 +4 +4 +0 +0  global_store_b32")
        common = ("emu", "run", self.object, "--kernel", "scale", "--args", "args.json")
        self.expect_error(1, "known are 7900xtx, 7900xt, 7800xt, 7600, w7900, 780m, strix-halo", *common, "--profile", "--chip", "z")
        self.expect_error(2, "--profile", *common, "--chip", "780m")

    def test_linked_objects(self):
        linked = self.folder / "kernels.so"
        subprocess.run(["ld.lld", "-shared", self.object, "-o", linked], check=True)
        self.write(group_size=[4], args=[{"buffer": {"dtype": "i32", "count": 4}}])
        for file in self.object, linked:
            row = self.run_kernel(0, "sizes", file=file)
            self.assertEqual(row["buffers"][0]["values"], [5, 6, 7, 8])

    def test_findings_fail(self):
        self.write(**{**self.SCALE, "args": self.SCALE["args"][:3] + [{"i32": 1}]})
        finding = self.run_kernel(1, "scale")["findings"][0]
        self.assertEqual(finding["kind"], "unmapped access")
        self.assertIn("global_load", finding["instruction"])
        self.write(groups=[2], group_size=[1], args=[{"buffer": {"dtype": "i32", "count": 1}}])
        self.assertEqual(self.run_kernel(1, "collide")["findings"][0]["kind"], "race between workgroups")

    PTX = """// by hand
        .version 7.8
        .target sm_86
        .address_size 64
        .visible .entry scale(.param .u64 out, .param .u64 in, .param .f32 by, .param .u32 shift)
        {
          .reg .b32 %r<4>; .reg .b64 %d<6>; .reg .f32 %f<3>;
          ld.param.u64 %d0, [out]; ld.param.u64 %d1, [in]; ld.param.f32 %f0, [by]; ld.param.u32 %r3, [shift];
          mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;
          mad.lo.u32 %r0, %r0, %r1, %r2;
          mul.wide.u32 %d2, %r0, 4; add.u64 %d3, %d0, %d2;
          add.u32 %r0, %r0, %r3; mul.wide.u32 %d2, %r0, 4; add.u64 %d4, %d1, %d2;
          ld.global.f32 %f1, [%d4]; mul.rn.f32 %f2, %f1, %f0; st.global.f32 [%d3], %f2;
          ret;
        }"""

    def test_ptx(self):
        (self.folder / "kernel.ptx").write_text(self.PTX)
        self.write(**self.SCALE)
        row = self.run_kernel(0, "scale", "--out", "out.json", file="kernel.ptx")
        self.assertTrue(row["finished"])
        self.assertEqual(row["findings"], [])
        self.assertEqual(row["buffers"][0]["values"], [3.0, 6.0, None] + [1.5] * 125)
        self.assertEqual((row["counts"]["ret"], row["counts"]["ld.param.u64"]), (4, 8))
        self.assertEqual(json.loads((self.folder / "out.json").read_text()), row)
        common = ("emu", "run", "kernel.ptx", "--kernel", "scale", "--args", "args.json")
        text = self.expect(0, *common, "--counts").stdout.decode()
        self.assertIn("4 mul.rn.f32", text)
        self.assertIn("args[0], 128 float32: 3.0 6.0", text)
        self.expect_error(1, "there are: scale", "emu", "run", "kernel.ptx", "--kernel", "k", "--args", "args.json")
        self.write(**{**self.SCALE, "args": self.SCALE["args"][:3] + [{"i32": 1}]})
        finding = self.run_kernel(1, "scale", file="kernel.ptx")["findings"][0]
        self.assertEqual((finding["kind"], finding["instruction"], finding["block"], finding["thread"]),
                         ("out of bounds", "ld.global.f32", 1, 63))
        (self.folder / "kernel.ptx").write_text(self.PTX.replace("mul.rn", "mul.up"))
        self.expect_error(1, "PTX line 13: '.up' is not known there", *common)

    def test_profile_of_ptx(self):
        (self.folder / "kernel.ptx").write_text(self.PTX)
        self.write(**self.SCALE)
        plain = self.run_kernel(0, "scale", file="kernel.ptx")
        row = self.run_kernel(0, "scale", "--profile", "--chip", "rtx4090", file="kernel.ptx")
        profile = row.pop("profile")
        self.assertEqual(row, plain)
        self.assertEqual((profile["chip"], profile["waves"], profile["workgroups"]), ("rtx4090", 4, 2))
        self.assertEqual(profile["bytes"], {"loaded": 512, "stored": 512})
        self.assertEqual(profile["lines"], profile["least_lines"])
        self.assertEqual(profile["sectors"], 32)
        self.assertEqual(sum(c["instructions"] for c in profile["classes"].values()), row["instructions"])
        self.assertEqual(sum(i["executed"] for i in profile["instructions"]), row["instructions"])
        self.assertEqual(profile["flops"], 128)
        common = ("emu", "run", "kernel.ptx", "--kernel", "scale", "--args", "args.json", "--profile")
        text = self.expect(0, *common).stdout.decode()
        self.assertIn("scale on h100: 2 workgroups, 4 waves of 32", text)
        self.assertRegex(text, r"4 +128 +512 +4 +4 +0 +0  st.global.f32")
        self.expect_error(1, "known are h100, h200, rtx4090, rtx3080", *common, "--chip", "7900xtx")

    def test_bad_input(self):
        def refused(code, wanted, kernel="scale", file=None):
            self.expect_error(code, wanted, "emu", "run", file or self.object, "--kernel", kernel, "--args", "args.json")
        self.write(**self.SCALE)
        refused(1, "there are: collide scale sizes", kernel="other")
        (self.folder / "text").write_text("no object")
        refused(1, "text is neither an ELF file nor a text of PTX", file="text")
        (self.folder / "short").write_bytes(b"\x7fELF")
        refused(1, "object file: header at 0", file="short")
        for change, wanted in (({"group": [1]}, "'group' is not known"), ({"groups": [0]}, "groups"),
                               ({"args": []}, "0 of them, the kernel takes 4"), ({"args": [{}] * 4}, "args[0]"),
                               ({"args": [{"f32": 1}] * 4}, "args[0]: 4 bytes, the kernel takes 8"),
                               ({"args": [{"buffer": {}}] * 4}, "args[0]: \"size\""), ({"seed": -1}, "seed")):
            self.write(**{**self.SCALE, **change})
            refused(2, wanted)
        (self.folder / "args.json").write_text("[")
        refused(2, "args.json")

if __name__ == "__main__":
    TUFF = os.path.abspath(sys.argv.pop(1))
    unittest.main()
