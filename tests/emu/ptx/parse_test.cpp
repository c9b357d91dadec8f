// What the parser takes, and what it says of what it does not take.
#include <tuff/error.h>

#include "emu/ptx/form.h"
#include "emu/ptx/launch.h"
#include "emu/ptx/makers.h"
#include "emu/ptx/ptx_scene.h"

namespace tuff::emu::ptx {
namespace {

std::string error_of(const std::string& text) {
  try {
    load(text);
    return "";
  } catch (const CompileError& e) {
    return e.what();
  }
}

void expect_error(const std::string& text, const std::string& words) {
  const std::string error = error_of(text);
  EXPECT_NE(error.find(words), std::string::npos) << "'" << error << "' of\n" << text;
}
// The body begins in line 21.
void expect_body_error(const std::string& body, const std::string& words) {
  expect_error(kernel_of(body), words);
}

TEST(PtxParse, TellsWhatAKernelTakes) {
  const auto module = load(std::string(kHead) + R"(
.shared .align 8 .b8 used[100];
.shared .align 8 .b8 unused[1000];
.const .f32 numbers[3] = {1.0, 2.0, 3.0};
.visible .entry first(
  .param .u64 .ptr .global .align 16 a,
  .param .u32 b,
  .param .align 8 .b8 record[20],
  .param .u8 c
)
.reqntid 64, 2
.minnctapersm 1
{
  .reg .b64 %rd<2>;
  .local .align 16 .b8 depot[40];
  .shared .u32 own;
  mov.u64 %rd1, used;
  mov.u64 %rd1, own;
  ret;
}
.visible .entry second() .maxntid 256, 2, 1 { exit; }
)");
  EXPECT_EQ(module->target(), "sm_86");
  EXPECT_EQ(module->version(), "7.8");
  ASSERT_EQ(module->kernels().size(), 2u);
  const auto& k = module->kernels()[0];
  EXPECT_EQ(k.name, "first");
  ASSERT_EQ(k.parameters.size(), 4u);
  EXPECT_EQ(k.parameters[1].offset, 8u);
  EXPECT_EQ(k.parameters[2].offset, 16u);
  EXPECT_EQ(k.parameters[2].bytes, 20u);
  EXPECT_EQ(k.parameters[2].alignment, 8u);
  EXPECT_EQ(k.parameters[3].offset, 36u);
  EXPECT_EQ(k.parameter_bytes, 37u);
  EXPECT_EQ(k.shared_bytes, 104u);
  EXPECT_EQ(k.local_bytes, 40u);
  EXPECT_EQ(k.constant_bytes, 12u);
  EXPECT_EQ(k.required_block, (std::array<uint32_t, 3>{64, 2, 1}));
  EXPECT_EQ(module->kernels()[1].most_threads, 512u);
  ASSERT_EQ(module->variables().size(), 1u);
  EXPECT_TRUE(module->variables()[0].constant);
  EXPECT_EQ(element_at<float>({module->variables()[0].host, module->variables()[0].host + 12}, 2),
            3.0f);
}

TEST(PtxParse, CommentsLinesAndDebugInformation) {
  EXPECT_EQ(error_of(std::string("// one\n/* two\n */") + kHead + R"(
.file 1 "a.c"
.section .debug_info { .b8 1, 2 .b32 name }
.visible .func (.param .b32 r) declared(.param .b32 a);
.visible .entry k() {
  .reg .b32 r;
  .loc 1 5 3
  .pragma "nounroll";
  { .reg .b32 r; mov.b32 r, 1; }
  mov.b32 r, 0x10; mov.b32 r, 0b101; mov.b32 r, 017; mov.b32 r, -1;
}
)"),
            "");
}

TEST(PtxParse, NamesTheLineAndWhatItDoesNotKnow) {
  expect_error("", "line 1: '.version' is wanted, not the end");
  expect_error(".version 7.8\n.target compute_86\n", "line 2");
  expect_error(std::string(kHead) + ".texref t;\n", "line 4: '.texref' is not known here");
  expect_body_error("\n  wgmma.fence;", "opcode 'wgmma' is not known");
  expect_body_error("add.f99 %f1, %f2, %f3;", "'.f99' is not known there, in 'add.f99'");
  expect_body_error("add.f32.rn %f1, %f2, %f3;", "'.rn' is not known there");
  expect_body_error("ld.global %r1, [%rd1];", "is not whole");
  expect_body_error("add.u32 %r1, %r2;", "2 operands, it takes 3");
  expect_body_error("add.u32 %r1, %r2, %r3, %r4;", "4 operands, it takes 3");
  expect_body_error("add.u32 %r1, %rd2, %r3;", "'%rd2' has 64 bits, 32 are wanted");
  expect_body_error("add.u32 %r1, %x2, %r3;", "'%x2' is not declared");
  expect_body_error("add.u32 %r1, %p2, %r3;", "'%p2' is no address");
  expect_body_error("add.u32 5, %r2, %r3;", "is no register");
  expect_body_error("add.f32 %f1, %f2, 3;", "is no constant of .f32");
  expect_body_error("mov.b16 %rs1, 70000;", "does not fit 16 bits");
  expect_body_error("selp.u32 %r1, %r2, %r3, %r4;", "'%r4' is no predicate");
  expect_body_error("bra NOWHERE;", "there is no label 'NOWHERE'");
  expect_body_error("A: A: ret;", "label 'A' is there twice");
  expect_body_error(".reg .b32 %r1;\n.reg .b32 %r1;", "'%r1' is declared twice");
  expect_body_error("brx.idx %r1, NOTHING;", "there are no branch targets");
  expect_body_error("call nobody, ();", "calls 'nobody', which the module does not define");
  expect_body_error("ld.global.v4.u64 {%rd1, %rd2, %rd3, %rd4}, [%rd0];", "16 are the most");
  expect_body_error("ld.global.v2.u32 {%r1}, [%rd0];", "a vector of 2 registers");
  expect_body_error("ld.global.u32 %r1, %rd0;", "an address in brackets");
  expect_body_error("mov.u32 %r1, 0f3F800000", "';' is wanted");
  expect_error(kernel_of("/*"), "a comment without an end");
  expect_error(kernel_of("\x01"), "has no meaning");
  expect_error(std::string(kHead) + ".visible .entry k() { ret; ", "without an end");
  expect_error(std::string(kHead) + ".extern .global .u32 x;", "modules are not linked");
  expect_error(std::string(kHead) + ".visible .entry k() {}\n.visible .entry k() {}",
               "defined twice");
  expect_error(std::string(kHead) + ".global .u32 x[2] = {1, 2, 3};", "fewer elements");
  expect_error(std::string(kHead) +
                   ".func (.param .b32 r) f(.param .b32 a) { ret; }\n.entry k() { .param .b64 a; "
                   ".param .b32 r; call (r), f, (a); }",
               "with other parameters");
}

TEST(PtxParse, LinesAreThoseOfTheText) {
  const std::string error =
      error_of(std::string(kHead) + ".entry k()\n{\n  /* a\n b */\n  foo;\n}");
  EXPECT_EQ(error, "PTX line 8: opcode 'foo' is not known");
}

// Each row's maker has something to execute for all that the row's types and modifiers say.
void each_spelling(std::string_view groups, const std::string& prefix,
                   const std::function<void(const std::string&)>& f) {
  const size_t begin = groups.find_first_not_of(' ');
  if (begin == std::string_view::npos) return f(prefix);
  const size_t end = std::min(groups.find(' ', begin), groups.size());
  std::string_view group = groups.substr(begin, end - begin);
  const std::string_view rest = groups.substr(end);
  if (group.ends_with('?')) {
    each_spelling(rest, prefix, f);
    group.remove_suffix(1);
  }
  for (size_t at = 0; at <= group.size();) {
    const size_t bar = std::min(group.find('|', at), group.size());
    each_spelling(rest, prefix + "." + std::string(group.substr(at, bar - at)), f);
    at = bar + 1;
  }
}

TEST(PtxParse, EveryRowIsExecutedByAFunction) {
  size_t count = 0;
  for (const OpcodeRow& row : opcode_rows()) {
    // Of hints for caches one is enough.
    std::string modifiers(row.modifiers);
    for (const char* hint :
         {"L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate?",
          "L2::64B|L2::128B|L2::256B?"}) {
      if (const size_t at = modifiers.find(hint); at != std::string::npos)
        modifiers.erase(at, std::strlen(hint));
    }
    each_spelling(modifiers, std::string(row.base), [&](const std::string& spelling) {
      Form form;
      std::string why;
      const OpcodeRow* found = match(spelling, form, why);
      ASSERT_NE(found, nullptr) << spelling << ": " << why;
      Instruction i;
      try {
        found->make(form, i);
      } catch (const CompileError&) {
        return;  // vectors that are too wide
      }
      EXPECT_NE(i.execute, nullptr) << spelling;
      ++count;
    });
  }
  fmt::print("{} rows, {} spellings\n", opcode_rows().size(), count);
  EXPECT_GT(count, 2000u);
}

TEST(PtxParse, LaunchesAreChecked) {
  Scene scene(std::string(kHead) + ".entry k(.param .u64 a) .reqntid 32 { ret; }");
  std::vector<uint32_t> words(4);
  const auto error = [&] {
    try {
      launch(scene.request);
      return std::string();
    } catch (const InvalidArgument& e) {
      return std::string(e.what());
    }
  };
  EXPECT_NE(error().find("takes 8 bytes of parameters, 0 are given"), std::string::npos) << error();
  scene.request.parameters.resize(8);
  EXPECT_EQ(error(), "");
  scene.request.block = {64, 1, 1};
  EXPECT_NE(error().find("wants blocks of 32 x 1 x 1, not 64 x 1 x 1"), std::string::npos);
  scene.request.block = {32, 1, 1};
  scene.request.dynamic_shared_bytes = 300 << 10;
  EXPECT_NE(error().find("shared memory"), std::string::npos);
  scene.request.dynamic_shared_bytes = 0;
  scene.request.kernel = "other";
  EXPECT_NE(error().find("no kernel 'other'"), std::string::npos);
  scene.request.kernel = "k";
  scene.request.memory = {{0x1000, 16, reinterpret_cast<uint8_t*>(words.data()), true},
                          {0x1008, 8, reinterpret_cast<uint8_t*>(words.data()), true}};
  EXPECT_NE(error().find("overlap"), std::string::npos) << error();
}

}  // namespace
}  // namespace tuff::emu::ptx
