#!/usr/bin/env python3
"""Fails on files and functions over the caps, and on banned names.

Files: 900 lines (aim: 500); functions: 80 lines (aim: 40). Tables of data are exempt: *.def,
*_table.*, folders named data. Registered as the ctest `check_size`.
Usage: tools/check_size.py [SOURCE_DIR]
"""
import ast
import pathlib
import re
import sys

FILE_CAP = 900
FUNCTION_CAP = 80
BANNED = {"util", "utils", "helper", "helpers", "manager", "misc", "common"}
FOLDERS = ["src", "models", "apps", "include", "python", "tests", "fuzz", "bench", "examples", "tools", "scripts", "shaders", "cmake"]
CPP = {".h", ".cpp", ".c"}
TEXT = CPP | {".py", ".sh", ".cmake", ".comp", ".glsl"}

NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<d>\w*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|'
                      r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*",
                      re.DOTALL | re.MULTILINE)
SCOPE = re.compile(r"\b(class|struct|enum|union|namespace|concept)\b")
NAMED_SCOPE = re.compile(r"\b(?:class|struct|enum|union|namespace|concept)\s+(?:class\s+)?(\w+)")
CALL_NAME = re.compile(r"(~?\w+)\s*\(")


def words(name):
    return {w.lower() for w in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def blank(match):
    """Keeps line breaks, so that line numbers stay."""
    return re.sub(r"[^\n]", " ", match.group(0))


def strip_groups(text, opening, closing):
    """Text without what stands in balanced brackets."""
    kept, depth = [], 0
    for c in text:
        depth += c == opening
        if depth == 0:
            kept.append(c)
        depth -= c == closing and depth > 0
    return "".join(kept)


def without_template_head(text):
    while (found := re.match(r"\s*template\s*<", text)):
        depth, at = 1, found.end()
        while at < len(text) and depth:
            depth += (text[at] == "<") - (text[at] == ">")
            at += 1
        text = text[at:]
    return text


def opens_function(head):
    head = without_template_head(head)
    outside = strip_groups(head, "(", ")")
    if "(" not in head or SCOPE.search(outside):
        return False
    return "operator" in outside or "=" not in outside


def is_member_initializer(head):
    """`A::A() : b_(1), c_` before `{2}`: a brace that belongs to the head."""
    outside = strip_groups(without_template_head(head), "(", ")").replace("::", "")
    return "(" in head and ":" in outside and "?" not in outside and re.search(r"[\w>]$", head)


def matching_brace(text, at):
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i
    return len(text) - 1


def cpp_names_and_functions(text):
    """Yields (name, first line, last line); scopes have one line."""
    text = NOT_CODE.sub(blank, text)
    start = at = 0
    while at < len(text):
        c = text[at]
        if c in ";}":
            start = at + 1
        elif c == "{":
            head = text[start:at]
            if is_member_initializer(head):
                at = matching_brace(text, at) + 1
                continue
            first = text.count("\n", 0, start + len(head) - len(head.lstrip())) + 1
            if opens_function(head):
                name = CALL_NAME.search(without_template_head(head))
                end = matching_brace(text, at)
                yield (name.group(1) if name else "?", first, text.count("\n", 0, end) + 1)
                at = end
            elif (named := NAMED_SCOPE.search(without_template_head(head))):
                yield (named.group(1), first, first)
            start = at + 1
        at += 1


def python_names_and_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield (node.name, node.lineno, node.end_lineno)
        elif isinstance(node, ast.ClassDef):
            yield (node.name, node.lineno, node.lineno)


def is_data(path):
    return path.suffix == ".def" or path.stem.endswith("_table") or "data" in path.parts


def check_file(path, shown):
    problems = []
    for part in shown.parts:
        if banned := words(pathlib.Path(part).stem.replace("_", " ")) & BANNED:
            problems.append(f"{shown}: '{banned.pop()}' is banned as a name")
    if is_data(shown):
        return problems
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    if lines > FILE_CAP:
        problems.append(f"{shown}: {lines} lines (cap {FILE_CAP})")
    items = []
    if path.suffix in CPP:
        items = cpp_names_and_functions(text)
    elif path.suffix == ".py":
        items = python_names_and_functions(text)
    for name, first, last in items:
        if last - first + 1 > FUNCTION_CAP:
            problems.append(f"{shown}:{first}: {name} has {last - first + 1} lines (cap {FUNCTION_CAP})")
        if banned := words(name) & BANNED:
            problems.append(f"{shown}:{first}: {name}: '{banned.pop()}' is banned as a name")
    return problems


def main():
    default = pathlib.Path(__file__).resolve().parent.parent
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    problems, count = [], 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and (path.suffix in TEXT or path.suffix == ".def"):
                count += 1
                problems += check_file(path, path.relative_to(root))
    print("\n".join(problems + [f"{count} files, {len(problems)} over the caps or badly named"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
