// Wrong shapes, axes, dtypes and devices: the documented error, its text naming the values, and
// nothing scheduled or submitted. The last tests read tensor.h: every public function of Tensor has
// a row there and is called by a test of values.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include <tuff/error.h>
#include "engine/stats.h"
#include "tensor/errors_table.h"

namespace tuff::test {
namespace {

TEST(TensorErrors, AreThrownBeforeAnythingIsScheduled) {
  for (const Wrong* w : wrong_rows()) {
    const uint64_t scheduled = engine::counters().schedule_ns, submits = engine::counters().submits;
    try {
      w->call();
      ADD_FAILURE() << w->name << ": no error";
    } catch (const Error& e) {
      EXPECT_STREQ(e.kind(), w->kind) << w->name << ": " << e.what();
      EXPECT_NE(std::string(e.what()).find(w->text), std::string::npos)
          << w->name << ": " << e.what();
    }
    if (w->computes_before) continue;
    EXPECT_EQ(engine::counters().schedule_ns, scheduled) << w->name;
    EXPECT_EQ(engine::counters().submits, submits) << w->name;
  }
}

std::string text_of(const std::string& path) {
  std::ifstream file(TUFF_SOURCE_DIR "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << path;
  return text.str();
}

// Names before the first bracket of the lines that stand one level inside a header's class, down to
// its private or protected part. Constructors and operators are other tests' matter.
std::set<std::string> public_functions(const std::string& path) {
  std::istringstream header(text_of(path));
  std::set<std::string> names;
  bool inside = false;
  for (std::string line; std::getline(header, line);) {
    if (line.starts_with("class Tensor") && line.find(';') == std::string::npos) inside = true;
    if (inside && (line == " private:" || line == " protected:")) break;
    if (!inside || line.size() < 3 || line.substr(0, 2) != "  " || line[2] == ' ') continue;
    const size_t end = line.find('('), comment = line.find("//");
    if (end == std::string::npos || comment < end) continue;
    size_t begin = end;
    while (begin > 0 && (isalnum(static_cast<unsigned char>(line[begin - 1])) ||
                         line[begin - 1] == '_' || line[begin - 1] == '~'))
      begin--;
    const std::string name = line.substr(begin, end - begin);
    if (!name.empty() && name != "Tensor" && name != "~Tensor") names.insert(name);
  }
  return names;
}

// Of class Tensor and its bases.
std::set<std::string> public_functions() {
  std::set<std::string> names;
  for (const char* part : {"", "_math", "_views", "_products", "_linalg", "_random", "_statistics",
                           "_scatter", "_shards", "_sorting", "_windows", "_writes"})
    names.merge(public_functions("include/tuff/tensor" + std::string(part) + ".h"));
  return names;
}

// No argument of theirs can be wrong.
const std::set<std::string> kTotal{"defined", "impl", "manual_seed", "str"};
// The rooms right of tensor reach the graph through it; it has no value.
const std::set<std::string> kInternal{"impl"};

TEST(TensorErrors, EveryPublicFunctionHasARow) {
  std::set<std::string> covered = kTotal;
  for (const Wrong* w : wrong_rows()) {
    const std::string name = w->name;
    covered.insert(name.substr(0, name.find_first_of(" (")));
  }
  const std::set<std::string> functions = public_functions();
  EXPECT_GT(functions.size(), 270u) << "the header is read wrongly";
  for (const std::string& f : functions) EXPECT_TRUE(covered.count(f)) << f << " has no row";
}

// Values: apps/check/functions*.cpp are compared with PyTorch and the interpreter on every device,
// the others hold what has no value to compare (memory, random numbers, gradients).
TEST(TensorErrors, EveryPublicFunctionIsCalledByATestOfValues) {
  std::string tests;
  for (const char* file :
       {"apps/check/functions.cpp", "apps/check/functions_math.cpp",
        "apps/check/functions_linalg.cpp", "apps/check/functions_special.cpp",
        "apps/check/functions_options.cpp", "apps/check/functions_views.cpp",
        "apps/check/functions_windows.cpp", "apps/check/functions_fft.cpp",
        "tests/tensor/draws_test.cpp",
        "apps/check/functions_sorting.cpp", "tests/tensor/sorting_test.cpp",
        "apps/check/functions_scatter.cpp", "tests/tensor/scatter_test.cpp",
        "tests/tensor/shards_test.cpp",
        "tests/tensor/reference.cpp", "tests/tensor/writes_test.cpp",
            "tests/tensor/elementary_test.cpp",
        "tests/tensor/state_test.cpp", "tests/tensor/conformance_test.cpp",
        "tests/tensor/autograd_test.cpp", "tests/tensor/creation_test.cpp",
        "tests/tensor/blob_test.cpp", "tests/tensor/names_test.cpp",
        "tests/tensor/index_assignment_test.cpp"})
    tests += text_of(file);
  for (const std::string& f : public_functions()) {
    const bool called = tests.find("." + f + "(") != std::string::npos ||
                        tests.find("." + f + "<") != std::string::npos ||
                        tests.find("::" + f + "(") != std::string::npos;
    EXPECT_TRUE(called || kInternal.count(f)) << f;
  }
}

}  // namespace
}  // namespace tuff::test
