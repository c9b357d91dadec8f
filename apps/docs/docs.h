// Generated pieces of the documents: what `tuff docs NAME` prints and tools/docs.py writes into
// ARCHITECTURE.md and docs/. The same text on every machine. Called by docs_command.cpp.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace tuff::docs {

std::string env_table();                      // the table of environment variables
std::string budget_table();                  // how far devices may be from the interpreter
std::string op_table();                      // the table of ops
std::string device_table();                  // the kinds of devices
std::string limit_table();                   // what TUFF_VK_LIMIT may name
std::string help_text(const CLI::App& app);  // the help of every command
std::string walk_text();                     // (a + b).sum() on every floor
std::string kernel_table();                  // how many kernels common functions become

}  // namespace tuff::docs
