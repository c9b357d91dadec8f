// The object loader on what clang really writes, and on damaged files.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/check.h"
#include "base/env.h"
#include "compiled.h"
#include "devices/elf_object.h"

namespace tuff::devices {
namespace {

template <class F>
F function(const ElfObject& o, const char* name) {
  return reinterpret_cast<F>(const_cast<void*>(o.function(name)));
}

const char* kElfSource = R"(
float expf(float);
void* memset(void*, int, unsigned long);
static const int table[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
static int counter = 40;
static int zeros[1000];
static int twice(int x) { return 2 * x; }
static int thrice(int x) { return 3 * x; }
static int (*const functions[2])(int) = {twice, thrice};
int look_up(int i) { return table[i & 15]; }
int count(void) { return ++counter; }
int zero(int i, int v) { int old = zeros[i]; zeros[i] = v; return old; }
int through_table(int which, int x) { return functions[which & 1](x); }
float exponential(float x) { return expf(x) * 0.5f; }
void clear(void* p, unsigned long n) { memset(p, 0, n); }
void* address_of_expf(void) { return (void*)expf; }
int choose(int x) {
  switch (x) { case 0: return 17; case 1: return -4; case 2: return 99; case 3: return 1234;
    case 4: return 5; case 5: return 61; case 6: return -77; default: return 0; }
}
double half(double x) { return x * 0.3 + 0.7; }
)";

class Elf : public testing::Test {
 protected:
  static const std::vector<uint8_t>& bytes() {
    static const auto object = compile(kElfSource);
    return *object;
  }
};

TEST_F(Elf, ConstantsDataAndCalls) {
  ElfObject o(bytes());
  EXPECT_EQ(function<int (*)(int)>(o, "look_up")(5), 9);
  EXPECT_EQ(function<int (*)()>(o, "count")(), 41);
  EXPECT_EQ(function<int (*)()>(o, "count")(), 42);
  EXPECT_EQ(function<int (*)(int, int)>(o, "zero")(999, 8), 0);
  EXPECT_EQ(function<int (*)(int, int)>(o, "zero")(999, 9), 8);
  EXPECT_EQ(function<int (*)(int, int)>(o, "through_table")(0, 21), 42);
  EXPECT_EQ(function<int (*)(int, int)>(o, "through_table")(1, 21), 63);
  EXPECT_EQ(function<float (*)(float)>(o, "exponential")(1.5f), std::exp(1.5f) * 0.5f);
  EXPECT_EQ(function<int (*)(int)>(o, "choose")(3), 1234);
  EXPECT_EQ(function<int (*)(int)>(o, "choose")(6), -77);
  EXPECT_EQ(function<double (*)(double)>(o, "half")(2.0), 2.0 * 0.3 + 0.7);
  EXPECT_EQ(function<void* (*)()>(o, "address_of_expf")(), os::process_symbol("expf"));
  char memory[300];
  std::memset(memory, 1, sizeof memory);
  function<void (*)(void*, unsigned long)>(o, "clear")(memory, 299);
  EXPECT_EQ(memory[298], 0);
  EXPECT_EQ(memory[299], 1);
}

TEST_F(Elf, TwoImagesHaveTheirOwnData) {
  ElfObject a(bytes()), b(bytes());
  EXPECT_EQ(function<int (*)()>(a, "count")(), 41);
  EXPECT_EQ(function<int (*)()>(b, "count")(), 41);
}

TEST_F(Elf, MissingNamesAreNamed) {
  ElfObject o(bytes());
  EXPECT_THROW(o.function("absent"), CompileError);
  EXPECT_THROW(o.function("twice"), CompileError);  // static
  auto object =
      compile("int no_such_function(int); int f(int x) { return no_such_function(x) + 1; }");
  try {
    ElfObject undefined(*object);
    FAIL() << "must throw";
  } catch (const CompileError& e) {
    EXPECT_NE(std::string(e.what()).find("no_such_function"), std::string::npos) << e.what();
  }
}

// Loading either works or throws; it never reads or writes out of bounds (run under ASan too).
void load_damaged(const std::vector<uint8_t>& bytes) {
  try {
    ElfObject o(bytes);
  } catch (const CompileError&) {
  } catch (const OutOfMemory&) {
  } catch (const IoError&) {}
}

TEST_F(Elf, TruncatedFilesThrow) {
  for (size_t n = 0; n < bytes().size(); n += 1 + n / 64)
    EXPECT_THROW(ElfObject{std::span(bytes()).first(n)}, CompileError) << n << " bytes";
}

TEST_F(Elf, FlippedBytesNeverCrash) {
  std::mt19937 rng(5);
  uint64_t headers;
  std::memcpy(&headers, bytes().data() + 40, 8);  // e_shoff
  for (int round = 0; round < 6000; ++round) {
    std::vector<uint8_t> damaged = bytes();
    for (uint32_t n = 1 + rng() % 3; n > 0; --n) {
      // the file header, the section headers, or anywhere (symbols, relocations, names)
      size_t at = rng() % damaged.size();
      if (round % 3 == 0) at = rng() % 64;
      if (round % 3 == 1) at = headers + rng() % (damaged.size() - headers);
      damaged[at] = rng() % 2 ? static_cast<uint8_t>(rng())
                              : static_cast<uint8_t>(damaged[at] ^ (1u << rng() % 8));
    }
    load_damaged(damaged);
  }
}

TEST_F(Elf, EveryHeaderByteAtItsExtremes) {
  uint64_t headers;
  std::memcpy(&headers, bytes().data() + 40, 8);
  for (size_t at = 0; at < bytes().size(); ++at) {
    if (at >= 64 && at < headers) continue;
    for (uint8_t v : {0x00, 0x7f, 0x80, 0xff}) {
      std::vector<uint8_t> damaged = bytes();
      damaged[at] = v;
      load_damaged(damaged);
    }
  }
}

TEST(Clang, CompilesInParallelInOrderAndReportsErrors) {
  std::vector<std::string> sources;
  for (int i = 0; i < 5; ++i)
    sources.push_back(fmt::format("int f(void) {{ return {}; }}", 100 + i));
  auto objects = compile_c(sources);
  ASSERT_EQ(objects.size(), 5u);
  for (int i = 0; i < 5; ++i) {
    ElfObject o(objects[static_cast<size_t>(i)]);
    EXPECT_EQ(function<int (*)()>(o, "f")(), 100 + i);
  }
  EXPECT_NE(compiler_identity().find("clang"), std::string::npos);
  sources = {"int f(void) { return undeclared_name; }"};
  try {
    compile_c(sources);
    FAIL() << "must throw";
  } catch (const CompileError& e) {
    EXPECT_NE(std::string(e.what()).find("undeclared_name"), std::string::npos) << e.what();
  }
}

// Whatever TUFF_CC names: the error says which program it was.
TEST(Clang, ErrorsNameTheCompiler) {
  std::vector<std::string> sources = {"int x;"};
  for (const auto& [program, why] :
       {std::pair("/bin/false", "ended with status 1"), std::pair("/bin/true", "no object file")}) {
    EnvOverride named(Env::TUFF_CC, program);
    try {
      compile_c(sources);
      FAIL() << program;
    } catch (const CompileError& e) {
      EXPECT_NE(std::string(e.what()).find(program), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  }
}

TEST(Clang, AbsentCompilerIsUnsupported) {
  EnvOverride none(Env::TUFF_CC, "no-such-compiler");
  EXPECT_FALSE(find_c_compiler());
  std::vector<std::string> sources = {"int x;"};
  EXPECT_THROW(compile_c(sources), Unsupported);
}

}  // namespace
}  // namespace tuff::devices
