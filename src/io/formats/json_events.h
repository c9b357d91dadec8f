// JSON of untrusted files as events: no tree is built, keys of one object are distinct, depth is
// bounded, errors name the byte. Called by safetensors; a format overrides what it takes.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/formats/bytes.h"

namespace tuff::io {

class JsonEvents {
 public:
  using Json = nlohmann::json;
  // `offset`: where the text stands in the file.
  JsonEvents(const ByteSource& source, uint64_t offset, size_t max_depth)
      : source_(source), offset_(offset), max_depth_(max_depth) {}
  virtual ~JsonEvents() = default;
  void parse(const std::string& text) {
    Json::sax_parse(text, this);  // throws what is refused
  }

  // The interface of nlohmann's sax_parse.
  bool null() { return other(); }
  bool boolean(bool) { return other(); }
  bool number_integer(Json::number_integer_t) { return other(); }
  bool number_float(Json::number_float_t, const std::string&) { return other(); }
  bool binary(Json::binary_t&) { return other(); }
  bool number_unsigned(Json::number_unsigned_t n) { return require_inside(), on_unsigned(n), true; }
  bool string(std::string& text) { return require_inside(), on_text(text), true; }
  bool key(std::string& name) {
    if (!keys_.back().insert(name).second) refuse("the key '{}' stands there twice", shown(name));
    on_key(name);
    return true;
  }
  bool start_object(size_t) { return open(true); }
  bool start_array(size_t) { return open(false); }
  bool end_object() { return close(true); }
  bool end_array() { return close(false); }
  bool parse_error(size_t position, const std::string&, const Json::exception& e) {
    // "[json.exception...] parse error at line 1, column 3: why"
    const std::string_view text = e.what();
    const size_t colon = text.find(": ");
    fail_at(source_, offset_ + (position ? position - 1 : 0), "no JSON: {}",
            shown(colon == std::string_view::npos ? text : text.substr(colon + 2)));
  }

 protected:
  const ByteSource& source() const { return source_; }
  size_t depth() const { return keys_.size(); }  // 1 inside the outermost object
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> reason, Args&&... args) const {
    fail_at(source_, offset_, reason, std::forward<Args>(args)...);
  }

 private:
  virtual void on_key(const std::string& key) = 0;
  virtual void on_open(bool object) = 0;   // depth() counts it
  virtual void on_close(bool object) = 0;  // depth() still counts it
  virtual void on_text(const std::string& text) = 0;
  virtual void on_unsigned(uint64_t n) = 0;
  // Negative and broken numbers, true, false and null.
  virtual void on_other() { refuse("a value where names, texts and whole numbers belong"); }

  void require_inside() const {
    if (keys_.empty()) refuse("no JSON object");
  }
  bool other() { return require_inside(), on_other(), true; }
  bool open(bool object) {
    if (keys_.empty() && !object) refuse("no JSON object");
    if (keys_.size() == max_depth_) refuse("JSON nested deeper than {}", max_depth_);
    keys_.emplace_back();
    if (keys_.size() > 1) on_open(object);
    return true;
  }
  bool close(bool object) {
    if (keys_.size() > 1) on_close(object);
    keys_.pop_back();
    return true;
  }

  const ByteSource& source_;
  uint64_t offset_;
  size_t max_depth_;
  std::vector<std::unordered_set<std::string>> keys_;
};

}  // namespace tuff::io
