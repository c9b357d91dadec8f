#!/usr/bin/env python3
"""The C++ examples of the documents as programs: every fenced ```cpp block of a Markdown file.

Usage: doc_examples.py extract FOLDER FILE.md ...
           writes FOLDER/NAME.cpp for every block, NAME.expected where the document shows what it
           prints (a fence ```output that follows), and prints the names. A block without a main
           is the body of one, with all of <tuff/...> included. Unchanged files keep their time.
       doc_examples.py run PROGRAM [EXPECTED]
           runs a program; fails if it does, or if it prints something else.
Exit codes: 0 good, 1 a program failed or printed something else, 2 usage or a malformed document.
"""
import difflib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FENCE = re.compile(r'^(\s*)(`{3,})\s*(\S*)\s*$')


class Malformed(Exception):
    pass


def fences(path):
    """(language, first line number of the body, body) of every fenced block."""
    lines = path.read_text(encoding='utf-8').splitlines()
    found, at = [], 0
    while at < len(lines):
        opening = FENCE.match(lines[at])
        at += 1
        if not opening:
            continue
        begin = at
        while at < len(lines) and lines[at].strip() != opening[2]:
            at += 1
        if at == len(lines):
            raise Malformed(f'{path}:{begin}: a fence is never closed')
        indent = len(opening[1])
        body = [line[indent:] for line in lines[begin:at]]
        found.append((opening[3], begin + 1, '\n'.join(body) + '\n'))
        at += 1
    return found


def program(path, line, body):
    marker = f'#line {line} "{path}"\n'
    if re.search(r'\bint main\s*\(', body):
        return marker + body
    headers = sorted((ROOT / 'include' / 'tuff').glob('*.h'))
    includes = ''.join(f'#include <tuff/{h.name}>\n' for h in headers)
    return f'#include <cstdio>\n{includes}using namespace tuff;\nint main() {{\n{marker}{body}}}\n'


def write_if_new(path, text):
    if not path.exists() or path.read_text(encoding='utf-8') != text:
        path.write_text(text, encoding='utf-8')


def extract(folder, documents):
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for document in documents:
        blocks = fences(document)
        for i, (language, line, body) in enumerate(blocks):
            shown = blocks[i - 1][0] if i else ''
            if language == 'output' and shown != 'cpp':
                raise Malformed(f'{document}:{line}: an output without its example')
            if language != 'cpp':
                continue
            name = f'{document.stem.lower()}_{sum(n.startswith(document.stem.lower() + "_") for n in names) + 1}'
            names.append(name)
            write_if_new(folder / f'{name}.cpp', program(document, line, body))
            expected = folder / f'{name}.expected'
            if i + 1 < len(blocks) and blocks[i + 1][0] == 'output':
                write_if_new(expected, blocks[i + 1][2])
            else:
                expected.unlink(missing_ok=True)
    print('\n'.join(names))
    return 0


def run(executable, expected):
    done = subprocess.run([executable], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f'{executable} ended with {done.returncode}\n{done.stdout}{done.stderr}')
        return 1
    if not expected:
        return 0
    want = pathlib.Path(expected).read_text(encoding='utf-8')
    if done.stdout == want:
        return 0
    print(''.join(difflib.unified_diff(want.splitlines(True), done.stdout.splitlines(True),
                                       'the document shows', 'the program prints')))
    return 1


def main():
    arguments = sys.argv[1:]
    try:
        if len(arguments) >= 3 and arguments[0] == 'extract':
            return extract(pathlib.Path(arguments[1]), [pathlib.Path(a) for a in arguments[2:]])
        if len(arguments) in (2, 3) and arguments[0] == 'run':
            return run(arguments[1], arguments[2] if len(arguments) == 3 else None)
    except (Malformed, OSError) as error:
        print(f'doc_examples: {error}', file=sys.stderr)
        return 2
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == '__main__':
    sys.exit(main())
