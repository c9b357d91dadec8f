#include "check/suite.h"

#include <set>
#include <sstream>
#include <unordered_map>

#include "base/check.h"

namespace tuff::check {
namespace {

std::vector<Case> make_suite() {
  std::vector<Case> out;
  append_elementwise_cases(out);
  append_cast_cases(out);
  append_reduce_cases(out);
  append_movement_cases(out);
  append_function_cases(out);
  std::set<std::string> names;
  for (const Case& c : out) TUFF_CHECK(names.insert(c.name).second, "two cases named {}", c.name);
  return out;
}

bool matches(const char* pattern, const char* text) {
  for (; *pattern; pattern++, text++) {
    if (*pattern == '*') {
      while (!matches(pattern + 1, text)) {
        if (!*text++) return false;
      }
      return true;
    }
    if (!*text || (*pattern != '?' && *pattern != *text)) return false;
  }
  return !*text;
}

}  // namespace

std::span<const Case> suite() {
  static const std::vector<Case> cases = make_suite();
  return cases;
}

const Case* find_case(const std::string& name) {
  static const auto by_name = [] {
    std::unordered_map<std::string, const Case*> out;
    for (const Case& c : suite()) out.emplace(c.name, &c);
    return out;
  }();
  const auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : it->second;
}

std::vector<const Case*> matching(const std::string& pattern) {
  std::vector<std::string> parts;
  std::stringstream list(pattern);
  for (std::string part; std::getline(list, part, ',');) parts.push_back(part);
  std::vector<const Case*> out;
  for (const Case& c : suite()) {
    for (const std::string& part : parts) {
      if (!matches(part.c_str(), c.name.c_str())) continue;
      out.push_back(&c);
      break;
    }
  }
  return out;
}

std::span<const DType> memory_dtypes() {
  static constexpr DType all[] = {DType::Bool, DType::I8,  DType::U8,  DType::I16, DType::U16,
                                  DType::I32,  DType::U32, DType::I64, DType::U64, DType::F16,
                                  DType::BF16, DType::F32, DType::F64};
  return all;
}

std::span<const DType> float8_dtypes() {
  static constexpr DType all[] = {DType::F8E4M3FN, DType::F8E5M2};
  return all;
}

}  // namespace tuff::check
