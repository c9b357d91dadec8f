// The decoder against LLVM's: random words of every opcode of every encoding.
#include "emu/rdna/decode.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string_view>

#include "emu/llvm_tools.h"
#include "emu/random_words.h"

namespace tuff::emu::rdna {
namespace {

struct Comparison {
  std::map<std::string, int> accepted;  // by text of the opcode
  std::map<std::string, std::vector<std::string>> wrong;

  void add(const std::vector<const OpcodeRow*>& rows,
           const std::vector<std::vector<uint32_t>>& cases, const std::vector<std::string>& ours) {
    const auto theirs = testing::disassemble(cases);
    for (size_t i = 0; i < cases.size(); ++i) {
      // LLVM marks what cannot be, and writes modifiers that some integer sources ignore as sext().
      if (!theirs[i] || theirs[i]->find("/*") != std::string::npos) continue;
      if (theirs[i]->find("sext(") != std::string::npos) continue;
      ++accepted[rows[i]->text];
      if (*theirs[i] != ours[i]) {
        wrong[rows[i]->text].push_back(fmt::format("{:08x}: LLVM \"{}\", here \"{}\"",
                                                   fmt::join(cases[i], " "), *theirs[i], ours[i]));
      }
    }
  }
};

std::string text_or_error(std::vector<uint32_t>& words) {
  try {
    const Instruction instruction = decode(words);
    words.resize(instruction.size_bytes / 4);
    return to_text(instruction);
  } catch (const std::exception& error) {
    words.resize(2);
    return error.what();
  }
}

TEST(RdnaDecode, RandomWordsReadAsLlvmReadsThem) {
  ASSERT_EQ(testing::why_no_llvm(), "");
  SplitMix64 random(7);
  Comparison comparison;
  std::vector<const OpcodeRow*> rows;
  std::vector<std::vector<uint32_t>> cases;
  std::vector<std::string> ours;
  for (const OpcodeRow& row : opcode_rows()) {
    if (row.op == Op::S_VERSION) continue;  // LLVM prints names of microcode versions
    for (int i = 0; i < 120; ++i) {
      cases.push_back(random_words(row, random));
      ours.push_back(text_or_error(cases.back()));
      rows.push_back(&row);
    }
  }
  comparison.add(rows, cases, ours);
  size_t accepted = 0;
  for (const auto& [text, count] : comparison.accepted) accepted += size_t(count);
  fmt::print("{} words of {} opcodes compared\n", accepted, comparison.accepted.size());
  for (const auto& [text, problems] : comparison.wrong) {
    ADD_FAILURE() << text << ": " << problems.size() << " of " << comparison.accepted[text]
                  << " differ, such as " << problems[0];
  }
  // LLVM 19 does not know all of them.
  for (const OpcodeRow& row : opcode_rows()) {
    const std::string_view text = row.text;
    if (row.op == Op::S_VERSION || text == "v_swap_b16" || text == "v_mov_b16_e64") continue;
    EXPECT_GT(comparison.accepted[row.text], 0) << row.text;
  }
}

}  // namespace
}  // namespace tuff::emu::rdna
