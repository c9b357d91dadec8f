// What files say beside their tensors: numbers, texts and lists of them by key. Called by users
// through io.h and by the readers of formats. Must never know of tensors.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tuff {

/// One value of a file's metadata. Signed integers are held as int64_t, unsigned ones as uint64_t,
/// floats of any width as double; nothing (None) is std::monostate.
struct MetadataValue {
  using List = std::vector<MetadataValue>;
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, List> value;

  /// As JSON writes it: "a text", 3, [1, 2]; of a longer list the first items, and how many there
  /// are.
  std::string str(size_t shown_items = 8) const;
  bool operator==(const MetadataValue&) const = default;
};

/// In the order of the file.
using Metadata = std::vector<std::pair<std::string, MetadataValue>>;

}  // namespace tuff
