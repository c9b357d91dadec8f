// The part of `tuff check` that random graphs need beyond cases: a failing one is reduced to a
// minimal graph and shown, and such a file is run again. Called by check_command.cpp.
#pragma once

#include <string>
#include <vector>

#include "check/run_case.h"

namespace tuff::cli {

struct FailedGraph {
  std::string device;
  check::CaseResult result;  // its reproducer is the file of the graph as it was made
};

// Reduces each and prints the minimal graph as text IR; writes it beside the graph's own file as
// *.minimal.graph if `keep`. Candidates run in children, so that a driver that crashes on them or
// hangs is found out; each graph may take ten times the timeout of a case.
void show_minimal(const std::vector<FailedGraph>& failed, double timeout_s, bool keep, bool json);

// Runs the graph of a file on each device in this process: 0 if all agree with the interpreter,
// else 1, differences on standard output.
int run_graph_file(const std::string& file, const std::vector<std::string>& devices);

}  // namespace tuff::cli
