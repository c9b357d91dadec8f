#!/usr/bin/env python3
"""Fails if two types share a qualified name: the linker would take one of them for both (the one-definition rule).

Finds structs, classes, unions and enumerations that are defined in namespaces with names; what an anonymous namespace
or a function holds is its file's own. Registered as the ctest `check_names`.
Usage: tools/check_names.py [SOURCE_DIR]
"""
import collections
import pathlib
import re
import sys

FOLDERS = ("src", "models", "apps", "include")
SUFFIXES = {".h", ".cpp", ".inc"}
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*',
                   re.DOTALL | re.MULTILINE)
NAMESPACE = re.compile(r"\bnamespace\s+([\w:]*)\s*$")
TYPE = re.compile(r"\b(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:\[\[[^\]]*\]\]\s*)?([A-Za-z_]\w*(?:::\w+)*)\s*(?:final\s*)?(?::(?!:)[^;{}()]*)?$")
OWN = None  # the scope of an anonymous namespace, a function or an initializer


def blanked(text):
    """The text without comments, literals and preprocessor lines; lines keep their numbers."""
    return NOISE.sub(lambda m: "\n" * m[0].count("\n") + " ", text)


def scope_of(head):
    """What a brace after `head` opens: a list of names, or OWN; and the name of a type."""
    namespace = NAMESPACE.search(head)
    if namespace:
        return (namespace[1].split("::") if namespace[1] else OWN), None
    found = TYPE.search(head)
    return ([found[1]], found[1]) if found else (OWN, None)


def types_of(text):
    """(qualified name, line) of every type that other files can name."""
    text, scopes, head, found = blanked(text), [], 0, []
    for at, character in enumerate(text):
        if character in ";{}":
            if character == "{":
                names, name = scope_of(text[head:at])
                scopes.append(names)
                if name and OWN not in scopes:
                    found.append(("::".join(n for s in scopes for n in s), text.count("\n", 0, at) + 1))
            elif character == "}" and scopes:
                scopes.pop()
            head = at + 1
    return found


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    places, files = collections.defaultdict(list), 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            files += 1
            for name, line in types_of(path.read_text(encoding="utf-8")):
                places[name].append(f"{path.relative_to(root)}:{line}")
    if not files:
        print(f"check_names: no sources below {root}", file=sys.stderr)
        return 1
    clashes = {name: where for name, where in places.items() if len(where) > 1}
    for name, where in sorted(clashes.items()):
        print(f"{name} is defined in {', '.join(where)}")
    print(f"check_names: {len(places)} types in {files} files, {len(clashes)} of more than one definition")
    return 1 if clashes else 0


if __name__ == "__main__":
    sys.exit(main())
