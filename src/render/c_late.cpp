#include "render/c_late.h"

#include <cctype>
#include <unordered_map>
#include <vector>

namespace tuff::render {
namespace {

bool is_part_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

struct Line {
  std::string_view text;
  std::string_view defines;            // the value that may move; empty: none
  std::vector<std::string_view> uses;  // names of values
  bool placed = false;
};

// The name between the type and the equals sign of a definition whose type ends so.
std::string_view moving_value(std::string_view text, std::string_view type) {
  const size_t begin = text.find_first_not_of(' '), space = text.find(' ', begin);
  if (begin == text.npos || space == text.npos || space < begin + type.size()) return {};
  if (text.substr(space - type.size(), type.size()) != type || text.substr(space, 2) != " v")
    return {};
  size_t end = space + 1;
  while (end < text.size() && is_part_of_name(text[end])) ++end;
  return text.substr(end, 3) == " = " ? text.substr(space + 1, end - space - 1)
                                      : std::string_view();
}

std::vector<std::string_view> values_in(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_part_of_name(text[end])) ++end;
    if (end > i + 1 && text[i] == 'v' && std::isdigit(static_cast<unsigned char>(text[i + 1])))
      out.push_back(text.substr(i, end - i));
    i = end > i ? end : i + 1;
  }
  return out;
}

class Block {
 public:
  Block(std::string_view block, std::string_view type) {
    while (!block.empty()) {
      const size_t end = block.find('\n') + 1;
      Line l{block.substr(0, end)};
      l.defines = moving_value(l.text, type);
      l.uses = values_in(l.text);
      if (!l.defines.empty()) line_of_[l.defines] = lines_.size();
      lines_.push_back(std::move(l));
      block.remove_prefix(end);
    }
  }

  std::string ordered() {
    for (size_t i = 0; i < lines_.size(); ++i)
      if (lines_[i].defines.empty()) place(i);
    for (size_t i = 0; i < lines_.size(); ++i) place(i);  // used behind the block
    return out_;
  }

 private:
  // Without recursion: a chain of multiply-adds is as long as the block.
  void place(size_t root) {
    std::vector<std::pair<size_t, size_t>> open{{root, 0}};  // a line, and the next of its uses
    while (!open.empty()) {
      auto& [at, next] = open.back();
      Line& l = lines_[at];
      if (l.placed || next == l.uses.size()) {
        if (!l.placed) out_ += l.text;
        l.placed = true;
        open.pop_back();
        continue;
      }
      const auto used = line_of_.find(l.uses[next++]);
      if (used != line_of_.end() && used->second != at && !lines_[used->second].placed)
        open.push_back({used->second, 0});
    }
  }

  std::vector<Line> lines_;
  std::unordered_map<std::string_view, size_t> line_of_;
  std::string out_;
};

}  // namespace

std::string values_at_first_use(std::string_view block, std::string_view type) {
  return Block(block, type).ordered();
}

}  // namespace tuff::render
