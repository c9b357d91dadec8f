#!/usr/bin/env python3
"""Fails if an include crosses the corridor the wrong way.

Data walks right; an include may only point left. Registered as the ctest `check_layers`.
Usage: tools/check_layers.py [SOURCE_DIR]
"""
import pathlib
import re
import sys

CORRIDOR = ["base", "graph", "sched", "kernel", "render", "hcq", "devices", "engine",
            "tensor", "nn", "io", "check", "cli"]
RANK = {room: i for i, room in enumerate(CORRIDOR)}

# The room that each public header belongs to. A header in include/tuff/<room>/ needs no row.
PUBLIC_HEADERS = {
    "error.h": "base", "dtype.h": "base", "dtypes.def": "base", "target.h": "base",
    "version.h": "base",
    "device.h": "engine", "counters.h": "engine", "profile.h": "engine",
    "kernel.h": "engine", "engine.h": "engine",
    "tensor.h": "tensor", "arguments.h": "tensor", "size.h": "tensor", "jit.h": "tensor", "autograd.h": "tensor", "random.h": "tensor", "functional.h": "tensor",
    "shape.h": "tensor", "gradient.h": "tensor",
    "interop/vulkan_device.h": "devices", "interop/vulkan.h": "tensor",
    "interop/opencl_device.h": "devices", "interop/opencl.h": "tensor",
    "nn.h": "nn", "optim.h": "nn", "module.h": "nn", "models.h": "nn", "gpt.h": "nn",
    "io.h": "io", "metadata.h": "io", "data.h": "io", "checkpoint.h": "io", "safetensors.h": "io", "npy.h": "io",
    "c.h": "io", "tuff.h": "io",
}

# Who may include the headers of an operating system or of one technology (path prefixes below src/).
OS_ROOMS = ("base/os", "devices/", "emu/")
OS_HEADERS = re.compile(r"^(unistd|fcntl|dlfcn|poll|spawn|pwd|sched|termios|pthread|signal|"
                        r"sys/.*|linux/.*|netinet/.*|arpa/.*)\.h$")
OWNED_HEADERS = [
    (re.compile(r"^vulkan/"), ("devices/vulkan/", "interop/vulkan_device.h")),
    (re.compile(r"^CL/"), ("devices/opencl/", "interop/opencl_device.h")),
    (re.compile(r"^spirv(-tools)?/"), ("render/", "devices/vulkan/")),
    (OS_HEADERS, OS_ROOMS),
]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
GETENV = re.compile(r"\b(secure_)?getenv\s*\(|\bsetenv\s*\(")
SUFFIXES = {".h", ".cpp", ".c", ".def", ".inc"}


def public_room(name):
    """Room of include/tuff/<name>, or None."""
    first = name.split("/")[0]
    return first if "/" in name and first in RANK else PUBLIC_HEADERS.get(name)


def device_folder(path):
    """'vulkan' of devices/vulkan/x.h; '' for the files beside the folders."""
    parts = path.split("/")
    return parts[1] if parts[0] == "devices" and len(parts) > 2 else ""


def check_devices(source, target):
    if source == "devices/registry.cpp":
        return None
    here, there = device_folder(source), device_folder(target)
    if source.startswith("devices/") and there and here != there:
        return f"only devices/registry.cpp sees all devices ('{there}' is a sibling)"
    if not source.startswith("devices/") and there and not source.startswith("cli/"):
        return "a device is reached through the registry and hcq's interfaces"
    return None


def check_emu(source, target):
    """emu stands beside the corridor: it sees base, and tables of constants of the drivers."""
    if source.startswith("emu/"):
        is_table = target.startswith("devices/") and target.endswith(".def")
        return None if target.split("/")[0] in ("base", "emu") or is_table else "emu sees base alone"
    if target.startswith("emu/") and source not in ("devices/registry.cpp", "cli/emu_command.cpp"):
        return "only devices/registry.cpp hands emu to the drivers, and `tuff emu` shows it"
    return None


def check_rooms(source, source_room, target, target_room):
    if source_room == "emu" or target_room == "emu":
        return check_emu(source, target)
    if RANK[target_room] > RANK[source_room]:
        return f"'{target_room}' stands right of '{source_room}'"
    return check_devices(source, target)


def check_owned(source, target):
    for pattern, owners in OWNED_HEADERS:
        if pattern.match(target) and not source.startswith(owners):
            return "this header belongs in " + " or ".join(owners)
    return None


def check_include(source, source_room, target):
    """None, or what is wrong with `#include target` in src/<source>."""
    first = target.split("/")[0]
    if first == "tuff":
        room = public_room(target.removeprefix("tuff/"))
        if room is None:
            return "public header without a room: add it to PUBLIC_HEADERS in tools/check_layers.py"
        return check_rooms(source, source_room, target, room)
    if first in RANK or first == "emu":
        return check_rooms(source, source_room, target, first)
    return check_owned(source, target)


def check_file(path, source, room):
    problems = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = INCLUDE.match(line)
        problem = check_include(source, room, found.group(2)) if found else None
        if GETENV.search(line.split("//")[0]) and source != "base/env.cpp":
            problem = "environment variables are read by base/env.h alone"
        if problem:
            problems.append(f"{path}:{number}: {line.strip()}: {problem}")
    return problems


def main():
    default = pathlib.Path(__file__).resolve().parent.parent
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    problems, count = [], 0
    for folder in ("src", "include/tuff"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            count += 1
            source = path.relative_to(root / folder).as_posix()
            room = source.split("/")[0] if folder == "src" else public_room(source)
            if room is None or (room not in RANK and room != "emu"):
                problems.append(f"{path}: no room of the corridor; see tools/check_layers.py")
                continue
            problems += check_file(path, source, room)
    print("\n".join(problems + [f"{count} files, {len(problems)} wrong includes"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
