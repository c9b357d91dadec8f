#!/usr/bin/env python3
"""Fails if a document cites what is not there, or is longer than its cap. Registered as the ctest `doc_paths`.

Read are README.md, ARCHITECTURE.md, CHANGELOG.md, bench/README.md and all of docs/. Checked are
  - links: the file, from the document's folder on, and the heading behind a #;
  - paths in backticks, whole or as a file of the tree is shortened (`hcq/graph.h`, `queue/fences.h`);
    a * stands for anything, and a name without a suffix for the files that have one;
  - variables TUFF_... and AMD_...: a row of src/base/env.def, or a word of CMake's files or of the sources;
  - `tuff COMMAND` and what follows it, in backticks and in fences: words of apps/cli and apps/bench;
  - names with () or :: in backticks: words of the sources, the tools or the tests.
Usage: tools/check_doc_paths.py [ROOT]
"""
import fnmatch
import os
import pathlib
import re
import sys

CAPS = {"README.md": 180, "ARCHITECTURE.md": 250}
SINGLE = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "bench/README.md"]
# Where names may stand; documents are no source of names.
SOURCES = ["src", "models", "apps", "include", "python", "scripts", "tools", "tests", "examples", "bench", "fuzz", "shaders", "cmake"]
SOURCE_SUFFIXES = {"", ".h", ".cpp", ".c", ".def", ".py", ".pyi", ".cmake", ".comp", ".glsl", ".in", ".sh", ".supp"}
# What made-up names stand in, to see that they are found.
NO_SOURCES = ("tests/tools/", "tools/check_doc_paths.py")
# A name with one of these suffixes is a citation wherever it stands; what users name (run.safetensors) is not.
OWN_SUFFIXES = {".h", ".cpp", ".c", ".def", ".md", ".py", ".pyi", ".cmake", ".comp", ".supp"}

FENCE = re.compile(r"^\s*(`{3,})\s*(\S*)\s*$")
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")  # its text may have begun on the line before
PATH = re.compile(r"^[\w.*+-]+(/[\w.*+-]+)*/?$")
VARIABLE = re.compile(r"\b((?:TUFF|AMD)_[A-Z0-9_]*[A-Z0-9])\b(?!\.\.)")
COMMAND = re.compile(r"^\s*(?:\$ )?tuff (.+)$")
SUBCOMMAND = re.compile(r"(\w+)(?:\.|->)add_subcommand\(\s*\"(\w+)\"")
CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")
QUALIFIED = re.compile(r"~?[A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)+")
WORD = re.compile(r"[A-Za-z_]\w*")


def slug(heading):
    """The anchor that a heading has on the usual hosts."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")


class Tree:
    """What there is: files and folders, words of the sources, commands."""

    def __init__(self, root):
        self.root = root
        self.files, self.folders = set(), set()
        for folder, names, files in os.walk(root):
            names[:] = [n for n in names if not n.startswith((".git", "build", "__pycache__"))]
            here = pathlib.Path(folder).relative_to(root)
            self.folders.update((here / n).as_posix() for n in names)
            self.files.update((here / f).as_posix() for f in files)
        self.stems = {f.rsplit(".", 1)[0] for f in self.files if "." in f.rsplit("/", 1)[-1]}
        self.folder_names = {f.rsplit("/", 1)[-1] for f in self.folders}
        self.words = set()
        for name in self.files:
            if self.is_source(name):
                self.words.update(WORD.findall(self.text(name)))
        self.read_commands()

    def text(self, name):
        return (self.root / name).read_text(encoding="utf-8", errors="replace")

    @staticmethod
    def is_source(name):
        """Whether names may stand in a file: code and scripts, no texts and no data."""
        if name in ("CMakeLists.txt", "CMakePresets.json") or name.endswith("/CMakeLists.txt"):
            return True
        suffix = pathlib.PurePosixPath(name).suffix
        return name.split("/")[0] in SOURCES and suffix in SOURCE_SUFFIXES and not name.startswith(NO_SOURCES)

    def read_commands(self):
        cli = [self.text(name) for name in self.files if name.startswith(("apps/cli/", "apps/bench/")) and name.endswith(".cpp")]
        self.commands = {name for text in cli for owner, name in SUBCOMMAND.findall(text) if owner == "app"}
        self.command_words = {w for text in cli for literal in re.findall(r'"([^"\n]*)"', text) for w in WORD.findall(literal)}

    def has_path(self, cited):
        """Whether a file, a folder or a file without its suffix is called so, or ends with it."""
        cited = cited.rstrip("/")
        for known in (self.files, self.folders, self.stems):
            if cited in known or any(k.endswith("/" + cited) for k in known):
                return True
            if "*" in cited and any(fnmatch.fnmatchcase(k, cited) or fnmatch.fnmatchcase(k, "*/" + cited) for k in known):
                return True
        return False

    def is_citation(self, span):
        """Whether a span of code is meant as a path of the tree."""
        if not PATH.match(span) or span.startswith("build/"):
            return False
        if pathlib.PurePosixPath(span).suffix in OWN_SUFFIXES:
            return True
        return "/" in span and span.split("/")[0] in self.folder_names


class Document:
    """A Markdown file: its prose, its fences, its headings."""

    def __init__(self, tree, name):
        self.name = name
        self.lines = tree.text(name).split("\n")
        self.prose, self.fenced, self.headings = [], [], set()
        closing = None
        for number, line in enumerate(self.lines, 1):
            fence = FENCE.match(line)
            if closing:
                if line.strip() == closing:
                    closing = None
                else:
                    self.fenced.append((number, line))
            elif fence:
                closing = fence.group(1)
            else:
                self.prose.append((number, line))
                if line.startswith("#"):
                    self.headings.add(slug(line.lstrip("#")))


class Checker:
    def __init__(self, tree):
        self.tree = tree
        self.problems = []
        names = [n for n in SINGLE if n in tree.files]
        names += sorted(n for n in tree.files if n.startswith("docs/") and n.endswith(".md"))
        self.documents = {n: Document(tree, n) for n in names}

    def run(self):
        for document in self.documents.values():
            cap = CAPS.get(document.name)
            length = len(document.lines) - (document.lines[-1] == "")
            if cap and length > cap:
                self.problems.append(f"{document.name}: {length} lines (cap {cap})")
            for number, line in document.prose:
                self.check_prose(document, number, line)
            for number, line in document.fenced:
                self.check_variables(document, number, line)
                self.check_command(document, number, line.split("#")[0])
        return self.problems

    def problem(self, document, number, text):
        self.problems.append(f"{document.name}:{number}: {text}")

    def check_prose(self, document, number, line):
        if line.count("`") % 2:
            self.problem(document, number, "code in backticks goes on in another line, where nothing checks it")
        for target in LINK.findall(SPAN.sub("", line)):
            self.check_link(document, number, target)
        self.check_variables(document, number, line)
        for span in SPAN.findall(line):
            self.check_command(document, number, span)
            if self.tree.is_citation(span):
                if not self.tree.has_path(span):
                    self.problem(document, number, f"there is no file or folder '{span}'")
            else:
                self.check_names(document, number, span)

    def check_link(self, document, number, target):
        if re.match(r"^[a-z]+:", target):
            return
        path, _, anchor = target.partition("#")
        name = os.path.normpath(os.path.join(os.path.dirname(document.name), path)) if path else document.name
        if name not in self.tree.files and name not in self.tree.folders:
            self.problem(document, number, f"the link '{target}' leads nowhere")
        elif anchor and name in self.documents and anchor not in self.documents[name].headings:
            self.problem(document, number, f"'{name}' has no heading for '#{anchor}'")

    def check_variables(self, document, number, line):
        for variable in VARIABLE.findall(line):
            if variable not in self.tree.words:
                self.problem(document, number, f"there is no variable, option or macro '{variable}'")

    def check_command(self, document, number, text):
        found = COMMAND.match(text)
        if not found:
            return
        words = found.group(1).split()
        while words and words[0].startswith("-"):  # --tuned FILE
            words = words[2:]
        if not words or not re.match(r"^[a-z]+(\|[a-z]+)*$", words[0]):
            return
        for command in words[0].split("|"):
            if command not in self.tree.commands:
                self.problem(document, number, f"there is no command 'tuff {command}'")
        if len(words) > 1 and re.match(r"^[a-z]\w*(\|[a-z]\w*)*$", words[1]):
            for word in words[1].split("|"):
                if word not in self.tree.command_words:
                    self.problem(document, number, f"'tuff {words[0]}' knows no '{word}'")

    def check_names(self, document, number, span):
        names = {n.lstrip("~") for q in QUALIFIED.findall(span) for n in re.split(r"::~?", q)}
        for name in sorted(names | set(CALLED.findall(span))):
            if name not in self.tree.words:
                self.problem(document, number, f"`{span}`: '{name}' occurs in no source")


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    checker = Checker(Tree(root))
    problems = checker.run()
    if not checker.documents:
        problems = [f"{root}: there are no documents"]
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
