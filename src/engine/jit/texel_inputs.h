// TexelInputs: the calls of a captured graph, whose inputs are patched at each replay. A texel view
// is bound to its memory and cannot be patched. Called by capture.cpp before anything else looks at
// the calls. Must never know Vulkan.
//
// The rule: an input that kernels read through views and none writes is used where it is, as long
// as every replay gives the memory that it had at capture, which is kept alive so long. Once it is
// elsewhere, the graph is recorded again, once per input at most; from then on a kernel of the
// graph, whose source is patched, copies it into memory of the graph's own. An input that is also
// written is copied from the beginning.
#pragma once

#include <span>
#include <vector>

#include "engine/realize/linear.h"

namespace tuff::engine {

class TexelInputs {
 public:
  TexelInputs() = default;
  TexelInputs(std::vector<BoundCall> calls, std::span<const Ref<Buffer>> inputs);
  // What is recorded: copies stand before the first kernel that reads an input through views, and
  // again after calls that write it.
  std::vector<BoundCall> calls() const;
  // What stands in those calls for the inputs that are patched; the others are in none of them.
  std::span<const Ref<Buffer>> patched() const { return patched_; }
  bool uses_any_where_it_is() const;
  // Notes which of a replay's inputs are elsewhere; whether the graph has to be recorded again.
  bool note_moved(std::span<const Ref<Buffer>> given) {
    return !fixed_.empty() && note_those_moved(given);
  }

 private:
  bool note_those_moved(std::span<const Ref<Buffer>> given);
  void find_fixed(std::span<const Ref<Buffer>> inputs);

  std::vector<BoundCall> calls_;
  // What stands in `calls_` for each input: where some are used where they are, a buffer without
  // memory, so that no other memory of the caller's is kept alive.
  std::vector<Ref<Buffer>> own_;
  std::vector<Ref<Buffer>> fixed_;    // the memory of those that are used where they are
  std::vector<Ref<Buffer>> patched_;  // `own_` of the others
};

}  // namespace tuff::engine
