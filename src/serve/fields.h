// JSON of requests: parsed within bounds, and the members of an object taken one by one. Whatever
// is of the wrong kind, out of range or unknown is a RequestError that names it. Called by the
// readers of requests. Must never know what a member means.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace tuff::serve {

// An object; RequestError for anything else, for one that is nested too deeply and for one of too
// many members.
Json parse_object(std::string_view text);
// As an error shows a value: its JSON, shortened.
std::string shown(const Json& value);

class Fields {
 public:
  // `where` stands before the names of members in errors: "messages[3]."
  explicit Fields(const Json& object, std::string where = {});
  // Null for one that is absent, and for one that is null.
  const Json* find(const std::string& name);
  const Json& required(const std::string& name, const char* wanted);
  bool flag(const std::string& name, bool otherwise);
  int64_t integer(const std::string& name, int64_t otherwise, int64_t low, int64_t high);
  double number(const std::string& name, double otherwise, double low, double high);
  std::string text(const std::string& name, const std::string& otherwise);
  // Known names whose values make no difference.
  void ignore(std::initializer_list<const char*> names);
  // RequestError for a member that nobody has asked for.
  void end() const;
  std::string path(const std::string& name) const { return where_ + name; }

 private:
  const Json& object_;
  std::string where_;
  std::vector<std::string> known_;
};

}  // namespace tuff::serve
