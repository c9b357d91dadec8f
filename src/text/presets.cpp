#include "text/presets.h"

#include <algorithm>

#include "base/check.h"

namespace tuff::text {
namespace {

// The expressions are those of the models' own tokenizer.json; which names stand for them is
// written down in llama.cpp (src/llama-vocab.cpp). What no
// expression matches is a piece as well.
#define TUFF_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define TUFF_TAIL " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

constexpr std::string_view kGpt2 =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kLlama3 =
    TUFF_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|" TUFF_TAIL;
constexpr std::string_view kQwen2 =
    TUFF_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|" TUFF_TAIL;
constexpr std::string_view kQwen35 = TUFF_CONTRACTIONS
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*"
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

// Words whose capitals come first, as in OpenAI's o200k.
#define TUFF_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define TUFF_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define TUFF_CASED_TAIL " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
constexpr std::string_view kTekken =
    "[^\\r\\n\\p{L}\\p{N}]?" TUFF_UPPER "*" TUFF_LOWER "+|[^\\r\\n\\p{L}\\p{N}]?" TUFF_UPPER
    "+" TUFF_LOWER "*|\\p{N}|" TUFF_CASED_TAIL;
constexpr std::string_view kGpt4o =
    "[^\\r\\n\\p{L}\\p{N}]?" TUFF_UPPER "*" TUFF_LOWER "+" TUFF_CONTRACTIONS
    "?|[^\\r\\n\\p{L}\\p{N}]?" TUFF_UPPER "+" TUFF_LOWER "*" TUFF_CONTRACTIONS
    "?|\\p{N}{1,3}|" TUFF_CASED_TAIL;

// Letters of the Latin, Greek, Cyrillic, Armenian, Georgian and a few more scripts.
constexpr std::string_view kDeepseekLetters =
    "\\s?["
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿ"
    "ᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨ"
    "K-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲"
    "𐳀-𐳲𑢠-𑣟𞤀-𞥃"
    "]+";
constexpr std::string_view kDeepseekPunctuation = "\\s?[!-/:-~！-／：-～‘-‟　-。]+";
constexpr std::string_view kDeepseekIdeographs = "[一-龥ࠀ-一가-퟿]+";
constexpr std::string_view kDeepseek3 =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?"
    "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
#undef TUFF_CONTRACTIONS
#undef TUFF_TAIL
#undef TUFF_UPPER
#undef TUFF_LOWER
#undef TUFF_CASED_TAIL

struct Row {
  std::vector<std::string_view> names;
  Preset preset;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> rows = {
      {{"default", ""}, {{"[\\p{P}\\$\\+<=>\\^~\\|]+", kGpt2, "\\p{N}+", "[0-9][0-9][0-9]"}}},
      {{"gpt-2", "phi-2", "mpt", "olmo", "jais", "exaone4", "gigachat", "mellum", "modern-bert",
        "roberta-bpe", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de",
        "jina-v2-code", "a.x-4.0", "trillion", "granite-docling"},
       {{kGpt2}}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b",
        "mellum2"},
       {{"\\p{N}", kGpt2}}},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
        "jina-v5-nano"},
       {{kLlama3}, true, true}},
      {{"glm4", "glm5"}, {{kLlama3}, true}},
      {{"chatglm-bpe", "dbrx", "smaug-bpe"}, {{kLlama3}}},
      {{"qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez", "solar-open", "grok-2",
        "kormo", "f2llmv2"},
       {{kQwen2}}},
      {{"qwen35"}, {{kQwen35}}},
      {{"tekken"}, {{kTekken}, true, true}},
      {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, {{kGpt4o}}},
      {{"deepseek-llm"},
       {{"[\\r\\n]", kDeepseekLetters, kDeepseekPunctuation, "\\s+$", kDeepseekIdeographs,
         "\\p{N}+"}}},
      {{"deepseek-coder"},
       {{"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", kDeepseekIdeographs, "\\p{N}"}}},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
       {{"\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", kDeepseek3}}},
      {{"falcon"}, {{"[\\p{P}\\$\\+<=>\\^~\\|`]+", kGpt2, "[0-9][0-9][0-9]"}}},
  };
  return rows;
}

}  // namespace

const Preset& preset(std::string_view name) {
  std::string known;
  for (const Row& row : rows()) {
    for (const std::string_view n : row.names) {
      if (n == name) return row.preset;
      if (!n.empty()) known += (known.empty() ? "" : ", ") + std::string(n);
    }
  }
  fail<Unsupported>("tokenizer.ggml.pre is '{:.80}', which tuff does not know; known are {}", name,
                    known);
}

}  // namespace tuff::text
