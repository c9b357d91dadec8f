// The name that a misspelt one was meant to be. Called where users write names: variables, devices,
// commands, options. Must never decide anything: it only words an error's remedy.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tuff {

// Edits (insert, delete, replace, swap neighbours; case is free) from one word to the other.
size_t edit_distance(std::string_view a, std::string_view b);

// "; did you mean X?" with the nearest of `names`, empty where none is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> names);

}  // namespace tuff
