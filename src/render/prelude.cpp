#include "render/prelude.h"

#include <algorithm>

namespace tuff::render {
namespace {

std::string replaced(std::string text, const Replacements& with) {
  for (const auto& [from, to] : with) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace

void Prelude::add(std::string_view text) { parts_.push_back({{}, std::string(text)}); }

void Prelude::add(std::vector<std::string> names, std::string_view text, const Replacements& with) {
  for (std::string& n : names) n = replaced(std::move(n), with);
  parts_.push_back({std::move(names), replaced(std::string(text), with)});
}

std::string Prelude::of(std::string_view text) const {
  std::vector<const Part*> chosen;  // from the last to the first
  for (auto p = parts_.rbegin(); p != parts_.rend(); ++p) {
    const auto named_in = [&](std::string_view t) {
      return std::any_of(p->names.begin(), p->names.end(), [&](const std::string& name) {
        return t.find(name) != std::string_view::npos;
      });
    };
    if (p->names.empty() || named_in(text) ||
        std::any_of(chosen.begin(), chosen.end(), [&](const Part* c) { return named_in(c->text); }))
      chosen.push_back(&*p);
  }
  std::string out;
  for (auto p = chosen.rbegin(); p != chosen.rend(); ++p) out += (*p)->text;
  return out;
}

std::string Prelude::whole() const {
  std::string out;
  for (const Part& p : parts_) out += p.text;
  return out;
}

}  // namespace tuff::render
