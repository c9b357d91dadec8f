#include <tuff/tokenizer.h>

#include <filesystem>

#include "base/check.h"
#include "io/formats/gguf.h"
#include "io/tensor_bytes.h"
#include "text/pipeline.h"
#include "text/unicode.h"

namespace tuff {

using text::Fragment;
using text::Ids;

namespace {

constexpr size_t kMaxText = size_t{1} << 31;  // places are 32 bits wide
constexpr uint64_t kMaxJson = uint64_t{1} << 30;

std::string contents(const io::ByteSource& file) {
  if (file.size_bytes() > kMaxJson)
    fail<IoError>("{}: {} bytes, more than {}", file.name(), file.size_bytes(), kMaxJson);
  const std::vector<uint8_t> bytes = file.bytes(0, file.size_bytes());
  return {bytes.begin(), bytes.end()};
}

void encode_normalized(const Tokenizer::State& s, std::string_view part, bool begins_text,
                       Ids& out) {
  text::Pieces pieces{{std::string(part)}, begins_text};
  if (s.cut) pieces = s.cut(std::move(pieces));
  for (const std::string& piece : pieces.items) s.model->encode(piece, out);
}

void encode_part(const Tokenizer::State& s, std::string_view part, bool begins_text,
                 bool with_special, Ids& out) {
  std::string owned;
  if (s.normalize) {
    owned = s.normalize(std::string(part));
    part = owned;
  }
  for (const Fragment& f : s.added_normalized.split(part, with_special)) {
    if (f.token >= 0) {
      out.push_back(f.token);
    } else {
      encode_normalized(s, f.text, begins_text && f.text.data() == part.data(), out);
    }
  }
}

// How many bytes at the front are whole characters, or can be part of none.
std::pair<size_t, bool> whole_character(std::string_view bytes) {
  if (const size_t n = first_character(bytes).bytes) return {n, true};
  const auto first = uint8_t(bytes[0]);
  const size_t wanted = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return {1, false};
  const auto second_fits = [&](uint8_t b) {
    const uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    return b >= low && b <= high;
  };
  size_t n = 1;
  while (n < bytes.size() && n < wanted &&
         (n == 1 ? second_fits(uint8_t(bytes[1])) : (uint8_t(bytes[n]) & 0xc0) == 0x80))
    n++;
  return {n == bytes.size() ? 0 : n, false};  // 0: more may come
}

}  // namespace

Tokenizer Tokenizer::open(const std::string& path) {
  namespace fs = std::filesystem;
  const bool is_folder = fs::is_directory(path);
  const fs::path file = is_folder ? fs::path(path) / "tokenizer.json" : fs::path(path);
  const io::FileBytes bytes(file.string());
  try {
    if (io::is_gguf(bytes)) return from_metadata(io::read_gguf(bytes).metadata);
    const auto beside = [&](const char* name) {
      const fs::path other = file.parent_path() / name;
      return is_folder && fs::exists(other) ? contents(io::FileBytes(other.string()))
                                            : std::string();
    };
    const text::TokenizerFiles files = {beside("tokenizer_config.json"),
                                        beside("generation_config.json"),
                                        beside("chat_template.jinja")};
    return Tokenizer(text::read_json_tokenizer(contents(bytes), files));
  } catch (const InvalidArgument& e) {
    fail<IoError>("{}: {}", file.string(), e.what());
  }
}

Tokenizer Tokenizer::from_json(std::string_view json) {
  return Tokenizer(text::read_json_tokenizer(json, {}));
}

Tokenizer Tokenizer::from_metadata(const Metadata& metadata) {
  return Tokenizer(text::read_gguf_tokenizer(metadata));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (text.size() >= kMaxText)
    fail<InvalidArgument>("tokenizer: a text of {} bytes; cut it into parts of less than {}",
                          text.size(), kMaxText);
  Ids out;
  if (options.add_special) out = state_->before;
  for (const Fragment& f : state_->added.split(text, options.parse_special)) {
    if (f.token >= 0) {
      out.push_back(f.token);
    } else {
      encode_part(*state_, f.text, f.text.data() == text.data(), options.parse_special, out);
    }
  }
  if (options.add_special) out.insert(out.end(), state_->behind.begin(), state_->behind.end());
  return out;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string out;
  bool begun = false;
  for (const int32_t id : ids) {
    std::string_view bytes = piece(id);
    if (skip_special && is_special(id)) continue;
    if (!begun && bytes.starts_with(state_->dropped_start))
      bytes.remove_prefix(state_->dropped_start.size());
    begun = true;
    out += bytes;
  }
  return out;
}

const std::string& Tokenizer::piece(int32_t id) const {
  if (id < 0 || size_t(id) >= size())
    fail<InvalidArgument>("tokenizer: token {} is outside the vocabulary of {}", id, size());
  return state_->pieces[size_t(id)];
}

const std::string& Tokenizer::token(int32_t id) const {
  piece(id);
  return (*state_->vocabulary)[id];
}

std::optional<int32_t> Tokenizer::find(std::string_view token) const {
  return state_->vocabulary->find(token);
}

size_t Tokenizer::size() const { return state_->vocabulary->size(); }
std::optional<int32_t> Tokenizer::bos() const { return state_->bos; }
std::optional<int32_t> Tokenizer::eos() const { return state_->eos; }
std::optional<int32_t> Tokenizer::unknown() const { return state_->unknown; }
std::optional<int32_t> Tokenizer::pad() const { return state_->pad; }
bool Tokenizer::is_end(int32_t id) const { return state_->ends.contains(id); }
bool Tokenizer::is_special(int32_t id) const {
  piece(id);
  return state_->special[size_t(id)];
}
const std::string& Tokenizer::chat_template() const { return state_->chat_template; }

TextStream::TextStream(Tokenizer tokenizer, bool skip_special)
    : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

std::string TextStream::push(int32_t id) {
  std::string_view bytes = tokenizer_.piece(id);
  if (skip_special_ && tokenizer_.is_special(id)) return {};
  const std::string& start = tokenizer_.state_->dropped_start;
  if (!begun_ && bytes.starts_with(start)) bytes.remove_prefix(start.size());
  begun_ = true;
  rest_ += bytes;
  std::string out;
  std::string_view rest = rest_;
  while (!rest.empty()) {
    const auto [n, whole] = whole_character(rest);
    if (n == 0) break;
    out += whole ? rest.substr(0, n) : text::kReplacementText;
    rest.remove_prefix(n);
  }
  rest_ = std::string(rest);
  return out;
}

std::string TextStream::finish() {
  std::string out;
  if (!rest_.empty()) out = text::kReplacementText;
  rest_.clear();
  begun_ = false;
  return out;
}

}  // namespace tuff
