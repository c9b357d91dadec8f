// The order of a block's statements: what takes registers begins to live where it is used. Called by
// the C renderer's walker, whose ops compute all of their instances at once.
#pragma once

#include <string>
#include <string_view>

namespace tuff::render {

// block: statements in a row, a line each, no loops or branches. A line "TYPE vN = EXPRESSION;" moves
// down to the first that uses vN; the others keep their order. `type` is the ending of the types
// whose values move ("x16"). Expressions have no effects; what they load is not stored to in the
// block.
std::string values_at_first_use(std::string_view block, std::string_view type);

}  // namespace tuff::render
