#include "emu/kernel/options.h"

#include <charconv>
#include <sstream>

#include "base/check.h"

namespace tuff::emu {
namespace {

uint64_t whole_number(const std::string& name, const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    fail<InvalidArgument>("TUFF_MOCK: {}:{}: a whole number is expected", name, text);
  return value;
}

}  // namespace

uint64_t in_range(const std::string& name, uint64_t value, uint64_t least, uint64_t most) {
  if (value < least || value > most)
    fail<InvalidArgument>("TUFF_MOCK: {}:{}: from {} to {} is possible", name, value, least, most);
  return value;
}

void read_options(const std::string& text,
                  const std::function<void(const std::string& name, uint64_t value)>& set) {
  std::istringstream pairs(text);
  for (std::string pair; std::getline(pairs, pair, ',');) {
    const size_t colon = pair.find(':');
    const std::string name = pair.substr(0, colon);
    set(name, whole_number(name, colon == std::string::npos ? "" : pair.substr(colon + 1)));
  }
}

}  // namespace tuff::emu
