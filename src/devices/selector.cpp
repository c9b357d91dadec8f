#include "devices/selector.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/check.h"

namespace tuff::devices {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string listing(std::span<const Choice> choices) {
  if (choices.empty()) return "there is none";
  std::string text = "there is";
  for (size_t i = 0; i < choices.size(); ++i) {
    text += fmt::format("{} {} \"{}\"", i ? "," : "", i, choices[i].shown);
    if (!choices[i].uuid.empty()) text += " uuid=" + choices[i].uuid;
  }
  return text;
}

}  // namespace

size_t choose(std::string_view kind, std::span<const Choice> choices, const std::string& selector) {
  if (selector.empty()) return 0;
  const bool by_uuid = selector.starts_with("uuid="), by_name = selector.starts_with("name=");
  if (by_uuid || by_name) {
    std::string wanted = lower(selector.substr(5));
    if (by_uuid) std::erase(wanted, '-');
    if (wanted.empty())
      fail<InvalidArgument>("{}:{} needs a part of what it names; {}", kind, selector,
                            listing(choices));
    const auto found = std::ranges::find_if(choices, [&](const Choice& c) {
      return by_uuid ? c.uuid.starts_with(wanted) : lower(c.name).find(wanted) != std::string::npos;
    });
    if (found == choices.end())
      fail<InvalidArgument>("{}:{} matches no device; {}", kind, selector, listing(choices));
    return static_cast<size_t>(found - choices.begin());
  }
  size_t index = 0;
  const char* end = selector.data() + selector.size();
  const auto [stop, error] = std::from_chars(selector.data(), end, index);
  if (error != std::errc() || stop != end)
    fail<InvalidArgument>("{}:{} is no selector: give an index, uuid=<hex> or name=<part>; {}",
                          kind, selector, listing(choices));
  if (index >= choices.size())
    fail<InvalidArgument>("{}:{} does not exist; {}", kind, selector, listing(choices));
  return index;
}

std::vector<std::string> split(std::string_view list, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(separator, at), list.size());
    if (end > at) parts.emplace_back(list.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string hex(std::span<const uint8_t> bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

uint64_t fnv1a(std::span<const uint8_t> bytes) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (uint8_t b : bytes) hash = (hash ^ b) * 0x100000001b3ull;
  return hash;
}

}  // namespace tuff::devices
