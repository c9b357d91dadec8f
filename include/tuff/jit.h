// Jit: a function of tensors that is captured once and then replayed as command graphs.
// The first call runs it, the second captures, later calls patch the input addresses and submit.
// Called by users; must never know how graphs are recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tuff/tensor.h>

namespace tuff {

namespace engine {
class CapturedGraph;
}

// What one replay does, and how many there have been. `rebind_copies` are those of arguments and
// results that are in other memory than the captured graph's, on a device that cannot patch
// addresses (see Jit); the submissions that carry them count in `submits_per_replay`. `host_copies`
// are those of `copies` that the host makes, between devices that do not reach each other's memory.
struct JitStats {
  uint32_t kernels = 0, copies = 0, barriers = 0, submits_per_replay = 0, rebind_copies = 0,
           host_copies = 0;
  uint64_t flops = 0, bytes = 0, replays = 0;
};

// An axis of an argument whose extent may be another at every call, from min to max (1 <= min).
// Axes of one name are the same variable: they have the same bounds and, in a call, the same
// extent. While it is captured the function sees a symbolic Size there. Such an axis is never taken
// for one of extent 1 that broadcasts.
struct DynamicAxis {
  size_t argument = 0;
  int64_t axis = 0;  // counted from the end if negative
  std::string name;
  int64_t min = 1, max = 0;
};

// What a Jit is told beside its function: the axes of its arguments that vary.
struct JitOptions {
  std::vector<DynamicAxis> dynamic = {};
};

// Runs a function once, captures it at its second call and replays that from then on.
//
// Axes that are named as dynamic may have another extent at every call: one graph, at the extents
// that the arguments have, serves them all.
//
// A result that is still held (the tensor, a view, or what is computed from it and not realized
// yet) keeps its values: the next replay then stores into new memory. One that is not held is used
// again, so that a loop that reads its loss and lets go allocates nothing. A result that is an
// argument, or a part or another shape of one, is that of each call; one that is a tensor of
// outside, assigned to or not, is that tensor.
//
// What replays would not do again is refused with InvalidArgument while the function is captured:
// reading values that depend on arguments or state on the host (item(), to_vector(), copy_to(),
// data_ptr(), nonzero()), writing from the host (copy_from(), set_lr(), manual_seed()). A tensor
// that the function computes and keeps elsewhere than in its results, a gradient say, is refused
// where it is used later.
//
// On a device without buffer device addresses a captured graph is bound to its memory. An argument
// or result that was the captured one at every replay costs nothing; one that has ever been another
// gets memory of the graph's own (the graph is recorded once more), and from then on is copied in
// before and out after each replay: JitStats::rebind_copies.
class Jit {
 public:
  using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  // InvalidArgument: no function, bounds that are none, axes of one name with different bounds.
  explicit Jit(Function function, JitOptions options = {});
  ~Jit();
  Jit(const Jit&) = delete;
  // Inputs must be realized and keep shape, dtype and device, dynamic axes apart: otherwise
  // InvalidArgument says which changed, or which extent is out of bounds or differs from another
  // of its name, before anything runs. IndexError if the function uses an argument for positions
  // and the host knows one of them to be outside (see tensor.h). Their buffers may be others at
  // every call. Everything else that changes from call to call must be an input or a tensor that
  // the function assigns to.
  // Results are realized and have the extents of this call; the call does not wait. A result may
  // be the next call's input. The vector is the Jit's own: its tensors are others after the next
  // call. InvalidArgument if the function calls this Jit.
  const std::vector<Tensor>& operator()(const std::vector<Tensor>& inputs);
  bool captured() const;
  JitStats stats() const;
  // For tools and tests of the engine: what was captured, or null before that.
  const engine::CapturedGraph* graph() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tuff
