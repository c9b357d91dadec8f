#!/usr/bin/env python3
"""Fails if a source uses a name of a standard header, or of fmt, that neither it nor a header of the project's that it
includes has included. Builds precompile these headers, so that the compiler does not miss them; what one
standard header includes of another is not counted on. Registered as the ctest `check_includes`.
Usage: tools/check_includes.py [SOURCE_DIR]
"""
import functools
import pathlib
import re
import sys

FOLDERS = ("src", "apps", "models", "tests", "python/src", "include")
ROOTS = ("src", "apps", ".", "include", "tests")
STANDARD = {
    "array": "array", "atomic": "atomic", "bit": "bit_cast popcount countr_zero countl_zero bit_width bit_ceil has_single_bit",
    "cmath": "sqrt exp exp2 log log2 sin cos pow fabs floor ceil isnan isinf isfinite ldexp frexp trunc",
    "cstring": "memcpy memset memcmp memmove strlen strcmp strerror",
    "algorithm": "sort stable_sort find_if any_of all_of none_of count_if transform fill copy_n clamp max_element min_element "
                 "equal reverse unique lower_bound upper_bound",
    "fstream": "ifstream ofstream", "functional": "function", "thread": "thread jthread", "limits": "numeric_limits", "map": "map multimap", "mutex": "mutex lock_guard unique_lock",
    "memory": "unique_ptr shared_ptr weak_ptr make_unique make_shared", "numeric": "accumulate iota gcd lcm",
    "optional": "optional nullopt", "set": "set multiset", "span": "span as_bytes", "string": "string to_string",
    "string_view": "string_view", "unordered_map": "unordered_map", "unordered_set": "unordered_set",
    "variant": "variant monostate get_if visit holds_alternative", "vector": "vector",
}
HEADER_OF = {name: header for header, names in STANDARD.items() for name in names.split()}
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^">]+)[">]', re.M)
NOISE = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"|//[^\n]*|/\*(?:.|\n)*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'')


@functools.cache
def parts(path):
    """Names of what is included, and the code without comments and texts."""
    text = path.read_text()
    return INCLUDE.findall(text), NOISE.sub(" ", text)


@functools.cache
def found(root, folder, name):
    for place in (folder, *(root / r for r in ROOTS)):
        if (place / name).is_file():
            return (place / name).resolve()
    return None


def reached(root, source):
    """Names of the headers outside of the project that the source includes, at any depth."""
    seen, outside, left = set(), set(), [source]
    while left:
        path = left.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in parts(path)[0]:
            inner = found(root, path.parent, name)
            if inner:
                left.append(inner)
            else:
                outside.add(name)
    return outside


def missing(root, sources):
    for path in sources:
        code, outside = parts(path)[1], reached(root, path)
        for name in sorted(set(re.findall(r"\bstd::(\w+)", code))):
            header = HEADER_OF.get(name)
            if header and header not in outside:
                yield f"{path.relative_to(root)}: std::{name} needs <{header}>"
        if re.search(r"\bfmt::\w", code) and not any(name.startswith("fmt/") for name in outside):
            yield f"{path.relative_to(root)}: fmt:: needs <fmt/format.h>"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]).resolve()
    sources = [p for f in FOLDERS for p in sorted((root / f).rglob("*")) if p.suffix in (".h", ".cpp")]
    lines = list(missing(root, sources))
    print("\n".join(lines) or f"{len(sources)} files include what they use of the standard headers")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
