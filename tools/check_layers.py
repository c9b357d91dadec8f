#!/usr/bin/env python3
"""Fails if an include crosses the corridor, or a wall inside one of its rooms, the wrong way.

Data walks right; an include may only point left. The rooms lie in src/, models/ and apps/; their order is
CORRIDOR, the order inside four of them WALLS. Environment variables are read in base/env.cpp, and asked for at
the doors: not in NO_ENVIRONMENT. Registered as the ctest `check_layers`.
Usage: tools/check_layers.py [SOURCE_DIR]
"""
import pathlib
import re
import sys

CORRIDOR = ["base", "ir", "sched", "kernel", "render", "hcq", "devices", "engine",
            "tensor", "nn", "io", "text", "language", "onnx", "models", "serve", "check", "bench", "gpu", "docs", "cli", "aco"]
RANK = {room: i for i, room in enumerate(CORRIDOR)}

# The order inside a room: folders, or files by stem or name, of its own. Those of one line may include one
# another, all others point up. What a file includes of its room must be listed, as it must be itself.
WALLS = {
    "engine": """
        known_integers outcome
        profile
        stats
        device.h
        uses
        buffer reading
        mapped_file
        store
        search
        program
        device.cpp
        realize
        jit""",
    "kernel": """
        lowered constants
        analysis
        opt
        pipeline.h
        lower
        pipeline.cpp text""",
    "devices/vulkan": """
        vulkan.h
        api
        quirks
        facts
        memory
        program
        queue
        self_test
        device
        interop""",
    "io": """
        formats
        gzip
        idx
        block_fields grids_table
        dequantize_grids
        dequantize quantize
        tensor_bytes tensor_pieces
        save tensor_file""",
}
WALLS = {room: {name: i for i, line in enumerate(text.strip().splitlines()) for name in line.split()}
         for room, text in WALLS.items()}

# Rooms that get the environment's wishes as options: engine/program/compile_options.h reads them.
NO_ENVIRONMENT = ("ir/", "sched/", "kernel/", "render/")

# The room that each public header belongs to. A header in include/tuff/<room>/ needs no row.
PUBLIC_HEADERS = {
    "error.h": "base", "dtype.h": "base", "dtypes.def": "base", "target.h": "base",
    "version.h": "base",
    "device.h": "engine", "counters.h": "engine", "profile.h": "engine",
    "kernel.h": "engine", "engine.h": "engine",
    "autocast.h": "tensor",
    "tensor.h": "tensor", "tensor_math.h": "tensor", "tensor_products.h": "tensor",
    "tensor_linalg.h": "tensor", "linalg.h": "tensor", "special.h": "tensor", "tensor_statistics.h": "tensor",
    "tensor_sorting.h": "tensor", "tensor_random.h": "tensor", "fft.h": "tensor",
    "tensor_views.h": "tensor", "tensor_scatter.h": "tensor", "tensor_shards.h": "tensor", "tensor_windows.h": "tensor", "tensor_writes.h": "tensor", "arguments.h": "tensor", "size.h": "tensor", "jit.h": "tensor", "autograd.h": "tensor", "scan.h": "tensor", "losses.h": "tensor", "kernel.h": "tensor", "int4.h": "tensor", "random.h": "tensor", "functional.h": "tensor",
    "shape.h": "tensor", "gradient.h": "tensor",
    "interop/vulkan_device.h": "devices", "interop/vulkan.h": "tensor",
    "interop/opencl_device.h": "devices", "interop/opencl.h": "tensor", "interop/cuda.h": "tensor",
    "nn.h": "nn", "data.h": "nn", "optim.h": "nn", "optimizer.h": "nn", "layers.h": "nn", "window_layers.h": "nn", "recurrent.h": "nn", "transformer.h": "nn", "schedules.h": "nn", "module.h": "nn", "models.h": "nn", "gpt.h": "nn",
    "io.h": "io", "metadata.h": "io", "checkpoint.h": "io", "safetensors.h": "io", "npy.h": "io",
    "c.h": "io", "tuff.h": "io", "tokenizer.h": "text", "chat_template.h": "text", "grammar.h": "text", "onnx.h": "onnx", "language.h": "language", "adapter.h": "language",
}

# Where a room lies, and what its includes begin with.
ROOTS = {"src": "", "apps": "", "models": "models/", "include/tuff": ""}

# Who may include the headers of an operating system or of one technology (path prefixes below src/).
OS_ROOMS = ("base/os", "devices/", "emu/", "serve/http_library.")
OS_HEADERS = re.compile(r"^(unistd|fcntl|dlfcn|poll|spawn|pwd|sched|termios|pthread|signal|"
                        r"sys/.*|linux/.*|netinet/.*|arpa/.*)\.h$")
OWNED_HEADERS = [
    (re.compile(r"^vulkan/"), ("devices/vulkan/", "interop/vulkan_device.h", "aco/",
                               "base/cooperative_matrix.")),
    (re.compile(r"^CL/"), ("devices/opencl/", "interop/opencl_device.h")),
    (re.compile(r"^spirv(-tools)?/"), ("render/", "devices/vulkan/", "aco/")),
    (re.compile(r"^(pcre2|utf8proc)\.h$"), ("text/",)),
    (re.compile(r"^httplib\.h$"), ("serve/http_library.cpp",)),
    (OS_HEADERS, OS_ROOMS),
]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
GETENV = re.compile(r"\b(secure_)?getenv\s*\(|\bsetenv\s*\(")
ENVIRONMENT = re.compile(r"\benv_(text|flag|int|names)\s*\(|\bEnv::")
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
    if not source.startswith(("devices/", "docs/", "cli/")) and there:
        return "a device is reached through the registry and hcq's interfaces"
    return None


# Who may name what the emulator offers: the door that opens it, and who reads its profiles.
EMULATOR_USES = (("devices/emulator.h", "emu/api.h"), ("gpu/emulated_run.h", "emu/api.h"),
                 ("cli/gpu_command.cpp", "emu/profile_json.h"))


def check_emu(source, target, target_room):
    """emu stands beside the corridor: it sees base, and tables of constants of the drivers. It is a library that
    programs open: they see what it offers."""
    if source.startswith("emu/"):
        is_table = target.startswith("devices/") and target.endswith(".def")
        return None if target_room in ("base", "emu") or is_table else "emu sees base alone"
    if target.startswith("emu/") and (source, target) not in EMULATOR_USES:
        return "emu is opened at run time, by devices/emulator.h"
    return None


def check_rooms(source, source_room, target, target_room):
    if source_room == "emu" or target_room == "emu":
        return check_emu(source, target, target_room)
    if RANK[target_room] > RANK[source_room]:
        return f"'{target_room}' stands right of '{source_room}'"
    return check_devices(source, target)


def place_in(room, path):
    """The place of a file in the order inside its room, and what it goes by; None if it has none."""
    inside = path.removeprefix(room + "/")
    names = [inside.split("/")[0]] if "/" in inside else [inside, inside.rsplit(".", 1)[0]]
    return next((WALLS[room][n] for n in names if n in WALLS[room]), None)


def check_walls(source, target):
    """Inside a room with walls."""
    for room in WALLS:
        if not source.startswith(room + "/"):
            continue
        here = place_in(room, source)
        there = place_in(room, target) if target.startswith(room + "/") else here
        if here is None or there is None:
            return f"no place in the order inside {room}: see WALLS in tools/check_layers.py"
        if there > here:
            return f"a wall inside {room}: it stands behind"
    return None


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
        return check_rooms(source, source_room, target, first) or check_walls(source, target)
    return check_owned(source, target)


def check_file(path, source, room):
    problems = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = INCLUDE.match(line)
        problem = check_include(source, room, found.group(2)) if found else None
        code = line.split("//")[0]
        # tuff_aco, a process of its own, tells a driver what to be by its environment.
        if GETENV.search(code) and source not in ("base/env.cpp", "aco/radv.cpp"):
            problem = "environment variables are read by base/env.h alone"
        if ENVIRONMENT.search(code) and source.startswith(NO_ENVIRONMENT):
            problem = "this room gets the environment's wishes as options"
        if problem:
            problems.append(f"{path}:{number}: {line.strip()}: {problem}")
    return problems


def main():
    default = pathlib.Path(__file__).resolve().parent.parent
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    problems, count = [], 0
    for folder, prefix in ROOTS.items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            count += 1
            source = prefix + path.relative_to(root / folder).as_posix()
            room = public_room(source) if folder == "include/tuff" else source.split("/")[0]
            if room is None or (room not in RANK and room != "emu"):
                problems.append(f"{path}: no room of the corridor; see tools/check_layers.py")
                continue
            problems += check_file(path, source, room)
    print("\n".join(problems + [f"{count} files, {len(problems)} wrong includes"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
