// Vocabularies of real models, and the ids of texts that their makers' tokenizers give
// (scripts/llama-data).
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <tuff/tokenizer.h>

namespace tuff {
namespace {

namespace fs = std::filesystem;

fs::path folder() {
  if (const char* f = std::getenv("TUFF_LLAMA_DATA")) return f;  // NOLINT
  const char* home = std::getenv("HOME");                        // NOLINT
  return fs::path(home ? home : "") / ".cache/tuff/llama-data/models";
}

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<std::string> parts(const std::string& text, const std::string& mark) {
  std::vector<std::string> out;
  size_t at = 0;
  for (size_t end; (end = text.find(mark, at)) != std::string::npos; at = end + mark.size())
    out.push_back(text.substr(at, end - at));
  out.push_back(text.substr(at));
  return out;
}

std::vector<int32_t> numbers(const std::string& line) {
  std::istringstream in(line);
  std::vector<int32_t> out;
  for (int32_t id; in >> id;) out.push_back(id);
  return out;
}

TEST(TokenizerGolden, IdsAreThoseOfTheMakersTokenizers) {
  if (!fs::exists(folder())) GTEST_SKIP() << folder() << " is not there: run scripts/llama-data";
  int vocabularies = 0;
  for (const auto& entry : fs::directory_iterator(folder())) {
    const fs::path path = entry.path();
    if (path.extension() != ".gguf") continue;
    SCOPED_TRACE(path.filename().string());
    const Tokenizer tokenizer = Tokenizer::open(path.string());
    const fs::path in = path.string() + ".inp", out = path.string() + ".out";
    if (!fs::exists(in)) continue;
    const auto texts = parts(contents(in), "\n__ggml_vocab_test__\n");
    const auto ids = parts(contents(out), "\n");
    ASSERT_LE(texts.size(), ids.size());
    vocabularies++;
    for (size_t i = 0; i + 1 < texts.size(); i++) {
      EXPECT_EQ(tokenizer.encode(texts[i], {false, false}), numbers(ids[i])) << texts[i];
    }
  }
  EXPECT_GE(vocabularies, 15);
}

// A text of a megabyte, and one of a megabyte without a place to cut it.
TEST(TokenizerGolden, LongTextsTakeNoLonger) {
  if (!fs::exists(folder())) GTEST_SKIP() << folder() << " is not there: run scripts/llama-data";
  for (const char* name : {"llama-bpe", "llama-spm", "gemma-4", "bert-bge", "nomic-bert-moe"}) {
    const Tokenizer tokenizer =
        Tokenizer::open((folder() / fmt::format("ggml-vocab-{}.gguf", name)).string());
    std::string text;
    while (text.size() < 1'000'000) text += "The quick brown fox, 123 jumps; über den Hund!\n";
    const std::string letters(1'000'000, 'a'), spaces(1'000'000, ' ');
    for (const std::string& t : {text, letters, spaces}) {
      const auto begin = std::chrono::steady_clock::now();
      const auto ids = tokenizer.encode(t);
      const std::chrono::duration<double> s = std::chrono::steady_clock::now() - begin;
      EXPECT_LT(s.count(), 10) << name;
      fmt::print("{} '{}' {} tokens in {:.2f} s\n", name, t.substr(0, 3), ids.size(), s.count());
    }
  }
}

}  // namespace
}  // namespace tuff
