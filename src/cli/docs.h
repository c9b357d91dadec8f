// Generated pieces of the documents: what `tuff docs NAME` prints and tools/docs.py writes into
// ARCHITECTURE.md and docs/. The same text on every machine. Called by docs_command.cpp.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace tuff::cli {

std::string docs_env();                      // the table of environment variables
std::string docs_budgets();                  // how far devices may be from the interpreter
std::string docs_ops();                      // the table of ops
std::string docs_devices();                  // the kinds of devices
std::string docs_limits();                   // what TUFF_VK_LIMIT may name
std::string docs_help(const CLI::App& app);  // the help of every command
std::string docs_walk();                     // (a + b).sum() on every floor
std::string docs_kernels();                  // how many kernels common functions become

}  // namespace tuff::cli
