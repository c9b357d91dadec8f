// Numbers in texts. Called where names, values of variables and the IR's text form are read.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>

namespace tuff {

// The number that the whole text spells; none for anything else and for what T cannot hold.
template <class T, std::same_as<int>... Base>
std::optional<T> parse_number(std::string_view text, Base... base) {
  T value{};
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, base...);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace tuff
