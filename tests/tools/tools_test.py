"""Tests of tools/: each check must find what it is for, and nothing else."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent.parent.parent / "tools"


def run(tool, *arguments):
    result = subprocess.run([sys.executable, TOOLS / tool, *map(str, arguments)],
                            capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


class WithTree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


class LayersTest(WithTree):
    def check(self, name, line):
        path = self.write(name, line + "\n")
        code, text = run("check_layers.py", self.root)
        path.unlink()
        return code == 0, text

    def test_left_is_allowed(self):
        for name, line in [("src/sched/a.cpp", '#include "ir/uop.h"'),
                           ("src/ir/a.cpp", "#include <tuff/dtype.h>"),
                           ("apps/cli/a.cpp", '#include "devices/vulkan/vulkan.h"'),
                           ("src/devices/registry.cpp", '#include "devices/vulkan/vulkan.h"'),
                           ("src/devices/emulator.h", '#include "emu/api.h"'),
                           ("src/devices/cpu/a.cpp", '#include "devices/cpu/b.h"'),
                           ("src/devices/cpu/a.cpp", "#include <sys/mman.h>"),
                           ("src/base/os_file.cpp", "#include <unistd.h>"),
                           ("src/emu/a.cpp", '#include "devices/amd/packets.def"'),
                           ("models/a.cpp", '#include "io/idx.h"'),
                           ("apps/cli/a.cpp", '#include "models/gpt_model.h"'),
                           ("src/kernel/lower/a.cpp", '#include "kernel/analysis/ranges.h"'),
                           ("src/kernel/pipeline.cpp", '#include "kernel/lower/words.h"'),
                           ("src/engine/device.cpp", '#include "engine/program/program_cache.h"'),
                           ("include/tuff/tensor.h", "#include <tuff/dtype.h>")]:
            good, text = self.check(name, line)
            self.assertTrue(good, text)

    def test_right_and_sideways_are_refused(self):
        for name, line in [("src/ir/a.cpp", '#include "sched/schedule.h"'),
                           ("src/kernel/a.h", '#  include "render/binary.h"'),
                           ("src/ir/a.cpp", "#include <tuff/tensor.h>"),
                           ("include/tuff/dtype.h", "#include <tuff/tensor.h>"),
                           ("src/devices/cpu/a.cpp", '#include "devices/vulkan/vulkan.h"'),
                           ("src/devices/cpu/a.cpp", '#include "emu/emu.h"'),
                           ("src/engine/a.cpp", '#include "devices/vulkan/vulkan.h"'),
                           ("src/emu/a.cpp", '#include "hcq/device.h"'),
                           ("src/emu/a.cpp", '#include "devices/amd/encode.h"'),
                           ("src/tensor/a.cpp", "#include <unistd.h>"),
                           ("src/base/env.h", "#include <unistd.h>"),
                           ("src/engine/a.cpp", "#include <vulkan/vulkan.h>"),
                           ("src/ir/a.cpp", 'auto p = std::getenv("HOME");'),
                           ("src/devices/registry.cpp", '#include "emu/amd/mock.h"'),
                           ("src/io/a.cpp", '#include "models/gpt_model.h"'),
                           ("models/a.cpp", '#include "check/suite.h"'),
                           ("src/kernel/opt/a.cpp", '#include "kernel/lower/words.h"'),
                           ("src/kernel/lower/a.cpp", '#include "kernel/text.h"'),
                           ("src/engine/device.h", '#include "engine/program/program_cache.h"'),
                           ("src/engine/attic/a.cpp", '#include "base/check.h"'),
                           ("src/devices/vulkan/queue/a.cpp", '#include "devices/vulkan/device/vulkan_device.h"'),
                           ("src/sched/a.cpp", "const bool on = env_flag(Env::TUFF_SPEC);"),
                           ("src/attic/a.cpp", ""),
                           ("include/tuff/unheard.h", "")]:
            good, text = self.check(name, line)
            self.assertFalse(good, f"{name}: {line}: {text}")
            self.assertIn(name.split("/")[-1], text)


class SizeTest(WithTree):
    def problems(self, name, text):
        path = self.write(name, text)
        code, output = run("check_size.py", self.root)
        path.unlink()
        return output if code else ""

    def test_long_functions(self):
        body = "  x();\n" * 79
        long_ones = [f"void f() {{\n{body}}}\n", f"T A<B>::f(int a = 1) const noexcept {{\n{body}}}\n",
                     f"A::A() : b_(1), c_{{2}} {{\n{body}}}\n", f"TEST(A, B) {{\n{body}}}\n",
                     f"struct A {{\n  int f() {{\n{body}  }}\n}};\n",
                     f"bool operator==(A a, A b) {{\n{body}}}\n",
                     f"template <class T, class = void>\nauto f(T t) -> int {{\n{body}}}\n"]
        for text in long_ones:
            self.assertIn("lines (cap 80)", self.problems("src/a.cpp", text), text[:60])
        self.assertIn("lines (cap 80)", self.problems("tools/a.py", "def f():\n" + "    x()\n" * 80))

    def test_what_is_no_long_function(self):
        lines = "  x();\n" * 78
        for text in [f"void f() {{\n{lines}}}\n", "struct A {\n" + "  int f();\n" * 200 + "};\n",
                     "const int kTable[] = {\n" + "  1,\n" * 200 + "};\n",
                     "namespace a {\n" + "void f() {}\n" * 200 + "}\n",
                     'void f() { s = "{"; c = \'{\'; /* { */ }  // {\n' + "int x;\n" * 200]:
            self.assertEqual(self.problems("src/a.cpp", text), "", text[:60])

    def test_file_cap(self):
        self.assertIn("901 lines", self.problems("src/a.cpp", "int x;\n" * 901))
        self.assertEqual(self.problems("src/a.cpp", "int x;\n" * 900), "")
        self.assertEqual(self.problems("src/a.def", "ROW(x)\n" * 2000), "")

    def test_banned_names(self):
        for name, text in [("src/util.h", ""), ("src/string_utils.cpp", ""), ("src/common/a.h", ""),
                           ("src/a.cpp", "class BufferManager {};"), ("src/a.cpp", "void split_helper() {}"),
                           ("src/a.cpp", "namespace misc {}"), ("tools/a.py", "def helper(): pass")]:
            self.assertIn("banned", self.problems(name, text), name + text)
        self.assertEqual(self.problems("src/a.cpp", "using T = std::common_type_t<A, B>;"), "")


class DocsTest(WithTree):
    def setUp(self):
        super().setUp()
        self.tuff = self.write("tuff", '#!/bin/sh\n[ "$2" = env ] || { echo "no table $2" >&2; exit 1; }\n'
                                       "echo '| a |'\necho '| b |'\n")
        self.tuff.chmod(0o755)

    def docs(self, text, *flags):
        path = self.write("README.md", text)
        code, output = run("docs.py", "--tuff", self.tuff, *flags, path)
        return code, output, path.read_text(encoding="utf-8")

    def test_writes_then_agrees(self):
        before = "x\n<!-- generated: env -->\nold\n<!-- end: env -->\ny\n"
        after = "x\n<!-- generated: env -->\n| a |\n| b |\n<!-- end: env -->\ny\n"
        code, output, text = self.docs(before, "--check")
        self.assertEqual((code, text), (1, before))
        self.assertIn("-old", output)
        self.assertEqual(self.docs(before)[::2], (0, after))
        self.assertEqual(self.docs(after, "--check")[::2], (0, after))

    def test_malformed_files_are_left_alone(self):
        for text in ["<!-- generated: env -->\n", "<!-- end: env -->\n",
                     "<!-- generated: env -->\n<!-- generated: env -->\n<!-- end: env -->\n",
                     "<!-- generated: env -->\n<!-- end: ops -->\n",
                     "<!-- generated: planets -->\n<!-- end: planets -->\n"]:
            code, _, after = self.docs(text)
            self.assertEqual((code, after), (1, text))


    WALK = "`a`; the tensor floor:\n\n```\n%0 = a:\n```\n\nScheduled, LINEAR:\n\n```\nkernel\n```\n\n"
    REST = "The kernel floor:\n\n```\n%0 = b\n```\n\nRendered for `c-x86-64`:\n\n```c\nint x;\n```\n"

    def short_walk(self, walk):
        self.write("walk.txt", walk)
        self.tuff = self.write("tuff", f"#!/bin/sh\ncat {self.root}/walk.txt\n")
        self.tuff.chmod(0o755)
        return self.docs("<!-- generated: walk-short -->\n<!-- end: walk-short -->\n")

    def test_the_short_walk_has_three_floors(self):
        code, output, text = self.short_walk(self.WALK + self.REST)
        self.assertEqual(code, 0, output)
        shown = self.WALK[:self.WALK.index("Scheduled")] + self.REST
        self.assertEqual(text, f"<!-- generated: walk-short -->\n{shown}<!-- end: walk-short -->\n")
        code, output, _ = self.short_walk(self.WALK)
        self.assertEqual(code, 1)
        self.assertIn("The kernel floor", output)

    def test_all_of_docs_is_checked(self):
        tools = self.root / "tools"
        tools.mkdir()
        shutil.copy(TOOLS / "docs.py", tools)
        self.write("docs/guide/deep.md", "<!-- generated: env -->\nold\n<!-- end: env -->\n")
        result = subprocess.run([sys.executable, tools / "docs.py", "--check", "--tuff", self.tuff],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("deep.md", result.stdout)


class DocPathsTest(WithTree):
    """What a made-up tree has is taken; each made-up name is a failure that names it and its line."""

    def setUp(self):
        super().setUp()
        self.write("src/base/env.def", 'TUFF_ENV(TUFF_DEVICE, Text, "", "", "Default device")\n')
        self.write("src/hcq/graph.h", "class CommandGraph { void replay(); };\n")
        self.write("apps/cli/a.cpp", 'app.add_subcommand(\n    "cache", "x"); c->add_subcommand("clear", "y");\n')
        self.write("docs/guide/other.md", "# A heading: `x`\n")

    def check(self, text, name="README.md"):
        path = self.write(name, text)
        result = run("check_doc_paths.py", self.root)
        path.unlink()
        return result

    def test_what_is_there(self):
        for text in ["`src/hcq/graph.h`, `hcq/graph.h`, `graph.h`, `hcq/graph`, `src/hcq/`, `src/*/graph.h`",
                     "[a](docs/guide/other.md), [b](docs/guide/other.md#a-heading-x), [c](https://x.org/y.md)",
                     "`TUFF_DEVICE=CPU`, `TUFF_...`, `run.safetensors`, `N/A`, `/dev/kfd`, `~/.cache/tuff`",
                     "`tuff cache clear`, `tuff --device CPU cache`, `CommandGraph::replay()`, `x.replay(1)`",
                     "```\ntuff cache clear FILE  # what `tuff nonsense` does\nhcq/nothing.h\n```"]:
            code, output = self.check(text)
            self.assertEqual(code, 0, text + output)

    def test_what_is_not_there(self):
        for text, told in [("`src/hcq/grahp.h`", "grahp.h"), ("`hqc/graph.h`", "hqc/graph.h"), ("`src/hcq/none/`", "none"),
                           ("`null_device.cpp`", "null_device.cpp"), ("`hcq/x*.h`", "hcq/x*.h"),
                           ("[a](docs/other.md)", "docs/other.md"), ("[a](docs/guide/other.md#b)", "#b"),
                           ("`TUFF_DEVISE=CPU`", "TUFF_DEVISE"), ("```\nTUFF_DEVISE=CPU tuff cache\n```", "TUFF_DEVISE"),
                           ("`tuff cash clear`", "cash"), ("`tuff cache cleer`", "cleer"), ("```\ntuff cash\n```", "cash"),
                           ("`CommandGraph::replai`", "replai"), ("`replai()`", "replai"),
                           ("[a\nb](docs/other.md)", "docs/other.md"), ("`a\nb`", "another line")]:
            code, output = self.check("good\n" + text)
            self.assertEqual(code, 1, text)
            self.assertIn("README.md:", output)
            self.assertIn(told, output)

    def test_links_are_seen_from_the_document(self):
        self.assertEqual(self.check("[a](../guide/other.md)", "docs/design/a.md")[0], 0)
        self.assertEqual(self.check("[a](docs/guide/other.md)", "docs/design/a.md")[0], 1)

    def test_caps(self):
        for name, cap in [("README.md", 180), ("ARCHITECTURE.md", 250)]:
            self.assertEqual(self.check("x\n" * cap, name)[0], 0)
            code, output = self.check("x\n" * (cap + 1), name)
            self.assertEqual(code, 1)
            self.assertIn(f"{cap + 1} lines (cap {cap})", output)


FAKE_TUFF = """#!/usr/bin/env python3
import json, sys
a = sys.argv[1:]
if a[0] == "devices":
    if "--json" in a:
        for name, kind, usable in [("VULKAN:0", "VULKAN", True), ("CPU", "CPU", True),
                                   ("CL", "CL", False), ("NULL", "NULL", True)]:
            print(json.dumps(dict(name=name, kind=kind, usable=usable, default=kind == "CPU", software=False)))
elif "--json" not in a:
    print("training")
else:
    device = a[a.index("--device") + 1]
    offset = OFFSET if device != "CPU" else 0
    if offset is None:
        sys.exit("device lost")
    for step in range(1, 11):
        print(json.dumps(dict(step=step, loss=4 - step / 10 + offset)))
    print(json.dumps(dict(device=device, driver="d", steps=10, train_loss=3 + offset, val_loss=3,
                          step_ms_median=5, host_us_median=20, kernels_per_step=9,
                          submits_per_step=1, compile_ms=100, seconds=1)))
"""


class NamesTest(WithTree):
    def test_types_of_one_name(self):
        self.write("include/tuff/a.h", "namespace tuff { class A final : public B { struct State; }; enum class E : int { X }; }")
        self.write("src/a.cpp", """
            // struct A {};
            namespace tuff { struct A::State { int i; };
            namespace { struct A {}; enum class E { Y }; }
            void f() { struct A {}; } const char* s = "struct A {"; }""")
        self.assertEqual(run("check_names.py", self.root)[0], 0)
        for clash in ("namespace tuff { struct A { }; }", "namespace tuff { enum class E { Y }; }",
                      "namespace tuff { class A { class State {}; }; }", "namespace tuff::x { class B {}; class B {}; }"):
            path = self.write("src/b.h", clash)
            code, text = run("check_names.py", self.root)
            self.assertEqual(code, 1, clash)
            self.assertIn("is defined in", text)
            path.unlink()


class DemoTest(WithTree):
    def demo(self, offset):
        tuff = self.write("tuff", FAKE_TUFF.replace("OFFSET", offset))
        tuff.chmod(0o755)
        return run("demo.py", "--tuff", tuff, "--seconds", 60)

    def test_devices_that_agree(self):
        code, text = self.demo("1e-4")
        self.assertEqual(code, 0, text)
        lines = [line.split() for line in text.splitlines()]
        self.assertIn(["CPU", "3.90000", "3.00000", "5.00", "20", "9", "1", "100", "d"], lines)
        self.assertIn(["VULKAN:0", "3.90010", "3.00010", "5.00", "20", "9", "1", "100", "d"], lines)
        self.assertNotIn("NULL", text)

    def test_devices_that_differ_or_fail(self):
        for offset, told in [("0.5", "Largest relative difference"), ("float('nan')", "inf"),
                             ("None", "VULKAN:0: device lost")]:
            code, text = self.demo(offset)
            self.assertEqual(code, 1, text)
            self.assertIn(told, text)


    def test_no_time_is_no_failure(self):
        tuff = self.write("tuff", FAKE_TUFF.replace("OFFSET", "0"))
        tuff.chmod(0o755)
        code, text = run("demo.py", "--tuff", tuff, "--seconds", 1)
        self.assertEqual(code, 0, text)
        self.assertIn("training", text)
        self.assertIn("CPU: not compared: no time was left", text)


class BuildProgressTest(WithTree):
    def test_shows_steps_and_keeps_all(self):
        printed = "-- Configuring\n[1/480] a.o\nwarning: b\n[312/480] c.o\n[ 65%] d\n"
        tool = [sys.executable, TOOLS / "build_progress.py", self.root / "log"]
        result = subprocess.run(tool, input=printed, capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stdout), (0, "  1 of 480, 0 s\n"))  # the rest within ten seconds
        self.assertEqual((self.root / "log").read_text(), printed)


class DocExamplesTest(WithTree):
    def extract(self, text):
        document = self.write("guide.md", text)
        code, said = run("doc_examples.py", "extract", self.root / "out", document)
        return code, said.split()

    def test_blocks_become_programs(self):
        code, names = self.extract("# x\n```cpp\nint main() { return 3; }\n```\n"
                                   "```\nno code\n```\n"
                                   "1. item\n   ```cpp\n   Tensor x;\n   ```\n")
        self.assertEqual((code, names), (0, ["guide_1", "guide_2"]))
        first = (self.root / "out" / "guide_1.cpp").read_text()
        self.assertIn('#line 3 ', first)
        self.assertNotIn("#include", first)
        second = (self.root / "out" / "guide_2.cpp").read_text()
        self.assertIn("#include <tuff/tensor.h>", second)
        self.assertIn("\nTensor x;\n}", second)
        self.assertFalse((self.root / "out" / "guide_1.expected").exists())

    def test_shown_output_is_kept_and_forgotten(self):
        example = "```cpp\nint main() {}\n```\nIt prints\n"
        self.extract(example + "```output\n7\n```\n")
        expected = self.root / "out" / "guide_1.expected"
        self.assertEqual(expected.read_text(), "7\n")
        self.extract(example + "```\n7\n```\n")
        self.assertFalse(expected.exists())

    def test_malformed_documents_are_refused(self):
        for text in ["```cpp\nint main() {}\n", "```output\n7\n```\n",
                     "```\nx\n```\n```output\n7\n```\n"]:
            self.assertEqual(self.extract(text)[0], 2, text)

    def test_programs_are_judged_by_code_and_output(self):
        program = self.write("program", "#!/bin/sh\necho 7\n")
        program.chmod(0o755)
        failing = self.write("failing", "#!/bin/sh\nexit 4\n")
        failing.chmod(0o755)
        same, other = self.write("same", "7\n"), self.write("other", "8\n")
        self.assertEqual(run("doc_examples.py", "run", program)[0], 0)
        self.assertEqual(run("doc_examples.py", "run", program, same)[0], 0)
        code, text = run("doc_examples.py", "run", program, other)
        self.assertEqual(code, 1)
        self.assertIn("-8\n+7", text)
        self.assertIn("ended with 4", run("doc_examples.py", "run", failing)[1])


class DoxygenFilterTest(WithTree):
    def filtered(self, text):
        code, out = run("doxygen_filter.py", self.write("a.h", text))
        self.assertEqual(code, 0, out)
        self.assertEqual(len(out.splitlines()), len(text.splitlines()))
        return out.splitlines()

    def test_comments_find_their_place(self):
        lines = self.filtered("// What it is.\n#pragma once\n\n// A class.\nclass A {\n"
                              " public:\n  // ---- facts. Of one\n  int x();  // is @x <y>\n};\n")
        self.assertEqual(lines[0], "/// @fileheader What it is.")
        self.assertEqual(lines[3], "/// A class.")
        self.assertEqual(lines[6], "  /** @section_of{facts} Of one */ /**@{*/")
        self.assertEqual(lines[7], "  int x();  ///< is \\@x &lt;y&gt;")
        self.assertEqual(lines[8], "/**@}*/};")

    def test_code_is_left_alone(self):
        lines = self.filtered('#pragma once\nconst char* a = "http://x";\nint b = 1;\n')
        self.assertEqual(lines[1:], ['const char* a = "http://x";', "int b = 1;"])


if __name__ == "__main__":
    unittest.main()
