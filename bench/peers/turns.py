"""Rows of a benchmark beside PyTorch on the CPU: each side does the same work in a process of its own, in turns."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

WARM_UP, RUNS = 3, 7


def child(step):
    """Prints the first step's and the median step's milliseconds."""
    times = []
    for _ in range(WARM_UP + RUNS):
        begin = time.perf_counter()
        step()
        times.append((time.perf_counter() - begin) * 1e3)
    print(json.dumps({"first": times[0], "median": statistics.median(times[WARM_UP:])}))


def measure(name, side, arguments, options=()):
    """What a side's own process prints of a row."""
    python = sys.executable if side == "tuff" else arguments.peer_python
    command = [python, os.path.abspath(sys.argv[0]), "--side", side, "--only", name, "--module", arguments.module,
               "--threads", str(arguments.threads), *options]
    environment = {**os.environ, "TUFF_DEVICE": "CPU", "TUFF_THREADS": str(arguments.threads)}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if result.returncode:
        sys.exit(f"{name}, {side}: {result.stderr}")
    return json.loads(result.stdout.splitlines()[-1])


def compare(name, arguments):
    """The row as it is printed and kept: medians of all rounds in ms, the longest first step in seconds."""
    times = {"tuff": [], "torch": []}
    for _ in range(arguments.rounds):
        for side, list_of in times.items():
            list_of.append(measure(name, side, arguments))
    ours, theirs = (statistics.median(t["median"] for t in times[side]) for side in ("tuff", "torch"))
    ratios = sorted(a["median"] / b["median"] for a, b in zip(times["tuff"], times["torch"]))
    return {"name": name, "tuff_ms": ours, "torch_ms": theirs, "ratio": statistics.median(ratios), "ratios": ratios,
            "tuff_first_s": max(t["first"] for t in times["tuff"]) / 1e3, "threads": arguments.threads}


def run(documentation, rows, tuff_step, torch_step, most=None):
    """Runs the program of a benchmark whose rows are `rows`. tuff_step(row, module) and torch_step(row, threads) make
    functions of one step; most: the ratios that --check allows, by row."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default="build/python")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=rows, default=list(rows))
    parser.add_argument("--json")
    parser.add_argument("--check", action="store_true", help="fail where a ratio is above what is allowed")
    parser.add_argument("--side", choices=("tuff", "torch"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        row = rows[arguments.only[0]]
        return child(tuff_step(row, arguments.module) if arguments.side == "tuff" else torch_step(row, arguments.threads))
    failed, lines = [], []
    print(f"{'':42}{'tuff':>10}{'PyTorch':>10}{'ratio':>8}{'first, s':>10}")
    for name in arguments.only:
        r = compare(name, arguments)
        print(f"{name:42}{r['tuff_ms']:10.2f}{r['torch_ms']:10.2f}{r['ratio']:8.2f}{r['tuff_first_s']:10.2f}", flush=True)
        lines.append(r)
        if arguments.check and r["ratio"] > (most or {}).get(name, float("inf")):
            failed.append(name)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    if failed:
        sys.exit(f"longer than allowed: {', '.join(failed)}")
