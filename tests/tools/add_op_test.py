"""What ARCHITECTURE.md says of adding an element-wise op, tried: in a copy of the sources made-up ops are added to
the files of its table. With all of its rows the files compile; with one left out the compiler refuses, naming the file
that lacks it.

Usage: add_op_test.py COMPILER [FLAG]...
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MOST_FILES = 6
COMPILER = []  # of the command line

# Of each op: the file, what the row begins with that the new one stands before, and the new one.
CBRT = {  # of floats, by the devices' own functions
    "src/ir/ops.def":
        ("TUFF_ALU(Trunc,", 'TUFF_ALU(Cbrt, "cbrt", 1, Same, U, FT|FK|FL, Floats, Any, Any, 5, None, 3, monotone<3>, "")\n'),
    "src/ir/scalar_eval.cpp":
        ("    {Op::Trunc,", "    {Op::Cbrt, {[](double x, auto) { return std::cbrt(x); }}},\n"),
    "src/ir/gradient.cpp":
        ("    {Op::Cast,", "    {Op::Cbrt, none},\n"),
    "src/render/c_ops.cpp":
        ("    {Op::Sqrt,", '    {Op::Cbrt, {{"cbrt", function}}},\n'),
    "src/render/spirv_ops.cpp":
        ("      {Op::Neg,", "      {Op::Cbrt, {&S::extended, GLSLstd450Sqrt}},\n"),
}
SQUARE = {  # of floats, made of other ops
    "src/ir/ops.def":
        ("TUFF_ALU(Trunc,",
         'TUFF_ALU(Square, "square", 1, Same, U|D, FT|FK|FL, Floats, Any, Any, 1, None, 0.5, monotone<1>, "")\n'),
    "src/ir/scalar_eval.cpp":
        ("    {Op::Trunc,", "    {Op::Square, {[](double x, auto) { return x * x; }}},\n"),
    "src/ir/gradient.cpp":
        ("    {Op::Cast,", "    {Op::Square, none},\n"),
    "src/kernel/lower/decompose.cpp":
        ("    {Op::Max,", "    {Op::Square, [](auto src, auto&) { return src[0] * src[0]; }},\n"),
}
POPCOUNT = {  # of integers
    "src/ir/ops.def":
        ("TUFF_ALU(Trunc,",
         'TUFF_ALU(Popcount, "popcount", 1, Same, U, FT|FK|FL, Integers, Any, Any, 1, None, 0, none, "")\n'),
    "src/ir/scalar_eval.cpp":
        ("    {Op::Trunc,", "    {Op::Popcount, {nullptr, [](uint64_t x) { return uint64_t(std::popcount(x)); }}},\n"),
    "src/ir/bounds.cpp":
        ("    {Op::Cast,", "    {Op::Popcount, unknown},\n"),
    "src/kernel/lower/int64_pair.cpp":
        ("    {Op::Add,", "    {Op::Popcount, [](auto, auto x) { return x[0]; }},\n"),
    "src/render/c_ops.cpp":
        ("    {Op::Sqrt,", '    {Op::Popcount, {{"popcount", function}}},\n'),
    "src/render/spirv_ops.cpp":
        ("      {Op::Neg,", "      {Op::Popcount, {&S::simple, 0, spv::OpBitCount, spv::OpBitCount}},\n"),
}
# Not by hand, yet made from the rows of ops.def.
DERIVED = ["src/ir/op_error.cpp", "src/ir/rewrite.cpp", "src/kernel/constants.cpp", "apps/check/elementwise_cases.cpp",
           "apps/check/random_graph.cpp"]


def listed_files():
    """The files of ARCHITECTURE.md's table below "An element-wise op"."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text[text.index("**An element-wise op.**"):].split("\n\n")[1]
    return [re.match(r"\| `([^`]+)` \|", row).group(1) for row in table.splitlines()[2:]]


class AddOpTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("src", "include", "apps/check"):
            shutil.copytree(ROOT / name, self.root / name)

    def add(self, path, row):
        before, new = row
        file = self.root / path
        text = file.read_text(encoding="utf-8")
        self.assertEqual(len(re.findall("^" + re.escape(before), text, re.M)), 1, f"{path}: {before}")
        file.write_text(re.sub("^" + re.escape(before), lambda m: new + m.group(0), text, flags=re.M),
                        encoding="utf-8")

    def faults(self, path):
        """What the compiler says of a file of the copy; nothing if it compiles."""
        command = COMPILER + ["-std=c++20", "-fsyntax-only", "-DFMT_SHARED", "-Isrc", "-Iapps", "-Iinclude", path]
        result = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)
        return result.stderr if result.returncode else ""

    def check(self, rows):
        self.assertLessEqual(len(rows), MOST_FILES)
        (table, row), *others = rows.items()
        self.add(table, row)
        for path, _ in others:  # each without its own row, the op being in the table
            shown = path.removeprefix("src/")
            self.assertRegex(self.faults(path), rf"static assertion failed[^\n]*{re.escape(shown)}", path)
        for path, row in others:
            self.add(path, row)
            self.assertEqual(self.faults(path), "")

    def test_places_are_those_of_the_document(self):
        self.assertEqual(set(listed_files()), set(CBRT) | set(SQUARE) | set(POPCOUNT))

    def test_op_of_floats(self):
        self.check(CBRT)
        for path in DERIVED:
            self.assertEqual(self.faults(path), "")

    def test_op_made_of_others(self):
        self.check(SQUARE)

    def test_op_of_integers(self):
        self.check(POPCOUNT)

    def test_row_without_its_columns(self):
        self.add("src/ir/ops.def", ("TUFF_ALU(Trunc,", 'TUFF_OP(Cbrt, "cbrt", 1, Same, U, FT|FK|FL, "")\n'))
        self.assertRegex(self.faults("src/ir/shape.cpp"), r"static assertion failed[^\n]*ir/ops\.def")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    COMPILER = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
