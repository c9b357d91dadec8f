#!/usr/bin/env python3
"""Writes generated tables into README.md, ARCHITECTURE.md and all of docs/, or checks that they are up to date.

A region stands between `<!-- generated: NAME -->` and `<!-- end: NAME -->`, each on a line of its
own; its text is what `tuff docs NAME` prints, what FROM_TUFF cuts out of that, or what FROM_FILES makes of a
file of the source tree.
Usage: tools/docs.py [--check] [--tuff build/bin/tuff] [FILE...]
"""
import argparse
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN = re.compile(r"^<!-- generated: ([\w-]+) -->$")
END = re.compile(r"^<!-- end: ([\w-]+) -->$")


class Malformed(Exception):
    """A region without its begin or end, or a command that failed."""


def run_tuff(tuff, name):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TUFF_")}
    result = subprocess.run([tuff, "docs", name], capture_output=True, text=True, env=env, check=False)
    if result.returncode != 0:
        raise Malformed(f"'{tuff} docs {name}' failed: {result.stderr.strip()}")
    return result.stdout.strip("\n").split("\n")


# The three floors of the worked example that ARCHITECTURE.md shows: how the titles of `tuff docs walk` end.
SHORT_WALK = ["the tensor floor:", "The kernel floor:", "Rendered for `c-x86-64`:"]


def walk_sections(lines):
    """(title, lines of the section) of every floor: a title, an empty line and a fence."""
    starts = [i for i, line in enumerate(lines[:-2]) if line.endswith(":") and not lines[i + 1] and lines[i + 2].startswith("```")]
    return [(lines[i], lines[i:end]) for i, end in zip(starts, starts[1:] + [len(lines)])]


def short_walk(tuff):
    """The floors of SHORT_WALK out of the worked example on every floor."""
    sections, out = walk_sections(run_tuff(tuff, "walk")), []
    for wanted in SHORT_WALK:
        found = [body for title, body in sections if title.endswith(wanted)]
        if len(found) != 1:
            raise Malformed(f"'tuff docs walk' has {len(found)} sections whose title ends with '{wanted}'")
        out += found[0] + ([] if found[0][-1] == "" else [""])
    return out[:-1]


DTYPES = ["bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64", "f8e4m3fn",
          "f8e5m2"]


def executed_cell(counts, devices, op, dtype):
    """One number if every device executed as many cases, else one per device; empty if there is none."""
    numbers = [counts[device].get(op, {}).get(dtype, 0) for device in devices]
    if not any(numbers):
        return ""
    return str(numbers[0]) if len(set(numbers)) == 1 else "/".join(map(str, numbers))


def executed_table(functions):
    """Op x dtype x device: how many cases of the conformance suite were executed, as pinned."""
    counts = json.loads((ROOT / "tests/data/check_counts.json").read_text(encoding="utf-8"))
    # A forced tier executes what its driver does, a sample of the cases says nothing of the others.
    devices = [name for name in counts if "/" not in name and " every " not in name]
    ops = [op for op in dict.fromkeys(op for d in devices for op in counts[d]) if op.startswith("Tensor.") == functions]
    used = [t for t in DTYPES if any(t in counts[d].get(op, {}) for d in devices for op in ops)]
    lines = [f"Devices: {', '.join(devices)}.", "", f"| | {' | '.join(used)} |", "|---" * (len(used) + 1) + "|"]
    for op in ops:
        cells = [executed_cell(counts, devices, op, t) for t in used]
        lines.append(f"| `{op.removeprefix('Tensor.')}` | {' | '.join(cells)} |")
    return lines


PROMISE = re.compile(r"^TUFF_FUNCTION_ULP\((\w+), (\w+), ([\d.]+), ([\d.]+)\)$", re.MULTILINE)


def function_errors_table():
    """What apps/check/function_ulps.def promises, and what scripts/function-errors found."""
    found = json.loads((ROOT / "tests/data/function_errors.json").read_text(encoding="utf-8"))
    columns = [f"{name}, 2^{data['samples'].bit_length() - 1}" for name, data in found.items()]
    lines = [f"| Function | dtype | promised, Vulkan | {' | '.join(columns)} |", "|---" * (3 + len(found)) + "|"]
    for function, dtype, host, vulkan in PROMISE.findall((ROOT / "apps/check/function_ulps.def").read_text(encoding="utf-8")):
        errors = [data["errors"].get(function, {}).get(dtype.lower(), [""])[0] for data in found.values()]
        lines.append(f"| `{function}` | {dtype.lower()} | {host if host == vulkan else f'{host}, {vulkan}'} | {' | '.join(errors)} |")
    return lines


FROM_TUFF = {"walk-short": short_walk}
FROM_FILES = {"function-errors": function_errors_table, "executed-ops": lambda: executed_table(False), "executed-functions": lambda: executed_table(True)}


def produce(tuff, name):
    """The lines of one region."""
    if name in FROM_FILES:
        return FROM_FILES[name]()
    return FROM_TUFF[name](tuff) if name in FROM_TUFF else run_tuff(tuff, name)


def regenerate(text, lines_of):
    """The text with every region's lines replaced by lines_of(name)."""
    out, open_name = [], None
    for number, line in enumerate(text.split("\n"), 1):
        begin, end = BEGIN.match(line), END.match(line)
        if begin and open_name:
            raise Malformed(f"line {number}: region '{open_name}' is still open")
        if end and end.group(1) != open_name:
            raise Malformed(f"line {number}: '{end.group(1)}' ends, but '{open_name}' is open")
        if end:
            open_name = None
        if open_name is None:
            out.append(line)
        if begin:
            open_name = begin.group(1)
            out += lines_of(open_name)
    if open_name:
        raise Malformed(f"region '{open_name}' is never closed")
    return "\n".join(out)


def process(path, tuff, check):
    """True if the file is (now) up to date."""
    before = path.read_text(encoding="utf-8")
    after = regenerate(before, lambda name: produce(tuff, name))
    if before == after:
        return True
    if not check:
        path.write_text(after, encoding="utf-8")
        print(f"{path.name}: written")
        return True
    sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), after.splitlines(True),
                                               f"{path.name} as it is", f"{path.name} as generated"))
    print(f"{path.name}: out of date; run tools/docs.py")
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail with a diff")
    parser.add_argument("--tuff", default=str(ROOT / "build/bin/tuff"))
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    files = options.files or [p for p in (ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted(ROOT.glob("docs/**/*.md"))) if p.exists()]
    good = True
    for path in files:
        try:
            good = process(path, options.tuff, options.check) and good
        except (Malformed, OSError) as error:
            print(f"{path}: {error}")
            good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
