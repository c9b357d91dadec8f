#!/usr/bin/env python3
"""Doxygen's input filter: turns this project's plain // comments into doxygen's, line by line.

A block of // lines above a declaration documents it; a // behind a declaration documents that one;
"// ---- title" begins a group of members, whose further words are the group's text; the comment that
a file opens with documents the file. Comments inside functions and those in // NOLINT form mean
nothing to doxygen and are left. Nothing in a comment is markup but `code`.

Usage: doxygen_filter.py FILE > filtered
"""
import html
import re
import sys

SECTION = re.compile(r'^(\s*)// -{3,} (.*?)\s*-*$')
WHOLE = re.compile(r'^(\s*)// ?(.*)$')
TRAILING = re.compile(r'^(.*[;,{}]|.*\))(\s+)// (.*)$')


def escaped(text):
    """Plain words as doxygen text: nothing of them is a command, a tag or a link by force."""
    parts = re.split(r'`([^`]*)`', text)
    for i, part in enumerate(parts):
        part = html.escape(part, quote=False)
        part = re.sub(r'([@\\#%$])', r'\\\1', part)
        part = part.replace('::', '\\::')
        parts[i] = f'<code>{part}</code>' if i % 2 else part
    return ''.join(parts)


class Filter:
    def __init__(self):
        self.in_file = False  # behind the first line, whose comment is the file's
        self.in_group = False
        self.previous_trailing = False

    def close(self):
        closing = '/**@}*/' if self.in_group else ''
        self.in_group = False
        return closing

    def line(self, line):
        """One line for one line, so that messages name the right one."""
        section = SECTION.match(line)
        if section:
            title, _, more = section[2].partition('. ')
            opening = f'{self.close()}/** @section_of{{{escaped(title)}}} {escaped(more)} */ /**@{{*/'
            self.in_group = True
            return section[1] + opening
        whole = WHOLE.match(line)
        if whole:
            return self.comment(whole[1], whole[2])
        self.in_file = True
        if re.match(r'^\s*};', line) or re.match(r'^ (public|private|protected):', line):
            return self.close() + line
        trailing = TRAILING.match(line)
        self.previous_trailing = trailing is not None
        if trailing:
            return f'{trailing[1]}{trailing[2]}///< {escaped(trailing[3])}'
        return line

    def comment(self, indent, text):
        # The lines behind a trailing comment that are indented as far go on with it.
        mark = '///<' if self.previous_trailing and len(indent) > 8 else '///'
        if not self.in_file:
            self.in_file = True
            return f'/// @fileheader {escaped(text)}'
        return f'{indent}{mark} {escaped(text)}'


def main():
    with open(sys.argv[1], encoding='utf-8') as f:
        lines = f.read().splitlines()
    each = Filter()
    print('\n'.join(each.line(line) for line in lines))


if __name__ == '__main__':
    main()
