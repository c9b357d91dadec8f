#include "emu/ptx/form.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "emu/ptx/makers.h"

namespace tuff::emu::ptx {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

bool is_choice(std::string_view group, std::string_view modifier) {
  for (size_t begin = 0; begin <= group.size();) {
    const size_t end = std::min(group.find('|', begin), group.size());
    if (group.substr(begin, end - begin) == modifier) return true;
    begin = end + 1;
  }
  return false;
}

// How many of the modifiers the groups take, all of them if the row fits.
size_t matched(std::string_view groups, const std::vector<std::string_view>& modifiers,
               bool& fits) {
  size_t taken = 0;
  for (std::string_view group : split(groups, ' ')) {
    const bool optional = group.ends_with('?');
    if (optional) group.remove_suffix(1);
    if (taken < modifiers.size() && is_choice(group, modifiers[taken])) {
      ++taken;
    } else if (!optional) {
      fits = false;
      return taken;
    }
  }
  fits = taken == modifiers.size();
  return taken;
}

}  // namespace

bool Form::has(std::string_view modifier) const {
  return std::ranges::find(modifiers, modifier) != modifiers.end();
}

Rounding Form::rounding() const {
  if (has("rz") || has("rzi")) return Rounding::Zero;
  if (has("rm") || has("rmi")) return Rounding::Down;
  if (has("rp") || has("rpi")) return Rounding::Up;
  return has("rna") ? Rounding::NearestAway : Rounding::Nearest;
}

std::span<const OpcodeRow> opcode_rows() {
#define TUFF_PTX(base, modifiers, operands, kind, maker) \
  {#base, modifiers, operands, Kind::kind, maker},
  static constexpr OpcodeRow rows[] = {
#include "emu/ptx/opcodes.def"
  };
#undef TUFF_PTX
  return rows;
}

const OpcodeRow* match(std::string_view spelling, Form& form, std::string& why) {
  std::vector<std::string_view> parts = split(spelling, '.');
  form = {};
  if (parts.empty()) {
    why = "no opcode";
    return nullptr;
  }
  form.base = parts[0];
  form.modifiers.assign(parts.begin() + 1, parts.end());
  size_t farthest = 0;
  bool known = false;
  for (const OpcodeRow& row : opcode_rows()) {
    if (row.base != form.base) continue;
    known = true;
    bool fits = false;
    farthest = std::max(farthest, matched(row.modifiers, form.modifiers, fits));
    if (!fits) continue;
    for (const std::string_view m : form.modifiers) {
      if (const auto type = type_of(m)) form.types.push_back(*type);
    }
    return &row;
  }
  if (!known)
    why = fmt::format("opcode '{}' is not known", form.base);
  else if (farthest < form.modifiers.size())
    why = fmt::format("'.{}' is not known there, in '{}'", form.modifiers[farthest], spelling);
  else
    why = fmt::format("'{}' is not whole: a type, or another modifier, is missing", spelling);
  return nullptr;
}

}  // namespace tuff::emu::ptx
