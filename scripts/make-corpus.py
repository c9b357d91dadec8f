#!/usr/bin/python3
"""Joins text files to a corpus of printable ASCII: make-corpus.py [--limit BYTES] OUT FILE...

Each file is headed by its name. Typographic characters are transliterated, lines that describe or
name paths of a build machine are left out, and files that would exceed the limit.
examples/data/corpus.txt was made with it once and stays as it is: `tuff train gpt` names its hash.
"""
import argparse
import re
import unicodedata

SPELLED = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-",
           "\u2026": "...", "\u2192": "->", "\u2190": "<-", "\u2194": "<->", "\u2265": ">=",
           "\u2264": "<=", "\u2260": "!=", "\u2248": "~", "\u00d7": "x", "\u00b7": "*",
           "\u00b5": "u", "\u03bc": "u", "\u2212": "-", "\u00b1": "+-", "\u2022": "*",
           "\u00a7": "section ", "\u221e": "inf", "\u2208": " in ", "\u2229": "&", "\t": "  "}
MACHINE_PATH = re.compile(r"/(work|home|root|tmp)(/|\b)|^Machine: ")


def ascii_text(text):
    text = "".join(SPELLED.get(c, c) for c in text)
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    lines = [line.rstrip() for line in text.split("\n") if not MACHINE_PATH.search(line)]
    return "".join(c for c in "\n".join(lines) if c == "\n" or 32 <= ord(c) < 127).strip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=420_000)
    parser.add_argument("out")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    corpus = ""
    for path in args.files:
        with open(path, encoding="utf-8") as file:
            name = re.sub(r"^.*/(?=DESIGN|reference/)", "", path)
            piece = f"=== {name} ===\n{ascii_text(file.read())}\n"
        if len(corpus) + len(piece) <= args.limit:
            corpus += piece
    with open(args.out, "w", encoding="ascii") as file:
        file.write(corpus)
    print(f"{args.out}: {len(corpus)} bytes")


main()
