// The parameters of a function as its C or OpenCL C says them, without a compiler: comments and
// preprocessor lines are skipped, macros are not expanded. Called by user_kernel.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuff::render {

// Of the definition of `name` at file scope: each parameter's text; none where there is no such
// definition.
std::optional<std::vector<std::string>> parameters_of(std::string_view text,
                                                      std::string_view name);

struct PointerParameter {
  bool is_pointer = false, to_const = false;
};
PointerParameter pointer_of(std::string_view parameter);

}  // namespace tuff::render
