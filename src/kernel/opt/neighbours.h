// The schedules that differ from one by a single step: an opt more, an opt less, another amount.
// Called by search. Must never know a device or measure anything.
#pragma once

#include <string_view>
#include <vector>

#include "kernel/opt/rules.h"

namespace tuff::kernel {

using Opts = std::vector<Opt>;

// Legal ones only, none twice; `ast` is what ast_for_opts() gave. Schedules whose body would have
// more than `most_lanes` lanes are left out: they take long to compile and spill.
std::vector<Opts> neighbours(const ir::UOp& ast, const Target& target, const Opts& opts,
                             int64_t most_lanes);

// What to_string() made; InvalidArgument names what is no opt.
Opts parse_opts(std::string_view text);

}  // namespace tuff::kernel
