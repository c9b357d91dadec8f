// Prelude: the definitions that stand before generated C, in parts. A unit gets those parts that it
// names, and what these name: parsing them all takes clang longer than compiling a small kernel.
// Made by dialects' rows, asked by who puts text together. Must never know what the parts are of.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuff::render {

// What a part's text has in place of others: {"$N", "8"}.
using Replacements = std::vector<std::pair<std::string_view, std::string>>;

class Prelude {
 public:
  // A part that every unit gets.
  void add(std::string_view text);
  // A part for units that hold one of the names, and for later parts that do. Replaced are both.
  void add(std::vector<std::string> names, std::string_view text, const Replacements& with = {});
  // The parts for a unit of this text, in the order in which they were added.
  std::string of(std::string_view text) const;
  // All parts, for what knows its unit later.
  std::string whole() const;

 private:
  struct Part {
    std::vector<std::string> names;  // none: always
    std::string text;
  };
  std::vector<Part> parts_;
};

}  // namespace tuff::render
