// The program as a function: arguments in, exit code out. Called by main.cpp.
#pragma once

namespace tuff::cli {

int run_program(int argc, const char* const* argv);

}  // namespace tuff::cli
