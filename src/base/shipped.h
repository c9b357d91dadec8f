// Where files lie that come with tuff and that programs open or start at run time: the emulator's
// library, the compiler tuff_aco. Called by those who open them.
#pragma once

#include <string>
#include <vector>

namespace tuff {

// Seen from the file that holds tuff's code (a program or a Python module): beside it, where
// `cmake --install` puts it, and in a build beside the Python package. They need not exist.
std::vector<std::string> shipped_places(const std::string& file);

}  // namespace tuff
