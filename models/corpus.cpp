#include "models/corpus.h"

#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/check.h"
#include "base/os.h"

namespace tuff::models {
namespace {

namespace fs = std::filesystem;

// Collects files in order; sizes are judged before one is read.
class CorpusReader {
 public:
  void add(const std::string& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) fail<IoError>("{}: no such file or folder", path);
    if (fs::is_directory(status)) return add_folder(path);
    if (!fs::is_regular_file(status)) {
      fail<IoError>("{}: neither a regular file nor a folder", path);
    }
    add_file(path);
  }
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  void add_folder(const std::string& path) {
    std::error_code error;
    const std::string real = fs::canonical(path, error).string();
    if (error) fail<IoError>("{}: {}", path, error.message());
    if (!open_folders_.insert(real).second) {
      fail<IoError>("{}: a link back to a folder that holds it ({})", path, real);
    }
    for (const std::string& name : os::list_directory(path)) {
      if (!name.starts_with('.')) add((fs::path(path) / name).string());
    }
    open_folders_.erase(real);
  }

  void add_file(const std::string& path) {
    std::error_code error;
    const uint64_t size = fs::file_size(path, error);
    if (error) fail<IoError>("{}: {}", path, error.message());
    if (size > kMaxCorpusBytes - size_) {
      fail<InvalidArgument>("{}: with its {} bytes the text is {} bytes long; the limit is {}",
                            path, size, size_ + size, kMaxCorpusBytes);
    }
    const std::vector<uint8_t> bytes = os::read_file(path);
    texts_.emplace_back(bytes.begin(), bytes.end());
    size_ += bytes.size();
  }

  std::vector<std::string> texts_;
  uint64_t size_ = 0;
  std::set<std::string> open_folders_;  // from the root of the walk down to the current one
};

std::vector<uint8_t> checked(std::vector<uint8_t> text, const std::string& origin) {
  if (text.empty()) fail<InvalidArgument>("{}: the text is empty", origin);
  if (text.size() > kMaxCorpusBytes) {
    fail<InvalidArgument>("{}: the text is {} bytes long; the limit is {}", origin, text.size(),
                          kMaxCorpusBytes);
  }
  return text;
}

}  // namespace

Corpus::Corpus(std::vector<uint8_t> text, std::string origin)
    : origin_(std::move(origin)),
      tokens_(checked(std::move(text), origin_)),
      vocabulary_(tokens_),
      train_size_(tokens_.size() - (tokens_.size() + 9) / 10) {
  hash_hex_ = fmt::format("{:016x}", XXH64(tokens_.data(), tokens_.size(), 0));
  for (uint8_t& byte : tokens_) byte = vocabulary_.token(byte);
}

void Corpus::require_context(uint32_t context) const {
  const uint64_t needed = uint64_t{context} + 2;
  const uint64_t shorter = std::min(train_tokens().size(), heldout_tokens().size());
  if (shorter < needed) {
    fail<InvalidArgument>(
        "{}: {} bytes are too few for context {}: training part and held-out tenth need {} bytes "
        "each, the shorter has {}; give more text or a smaller --context",
        origin_, size_bytes(), context, needed, shorter);
  }
}

std::vector<std::string> read_text_files(std::span<const std::string> paths) {
  CorpusReader reader;
  for (const std::string& path : paths) reader.add(path);
  return reader.take();
}

Corpus load_corpus(std::span<const std::string> paths) {
  std::vector<uint8_t> all;
  for (const std::string& text : read_text_files(paths)) all.insert(all.end(), text.begin(), text.end());
  return Corpus(std::move(all), paths.empty() ? "no path given"
                                             : fmt::format("{}", fmt::join(paths, ", ")));
}

}  // namespace tuff::models
