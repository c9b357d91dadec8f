// What a Jit makes of tensors on several devices: it binds, replays and shows memory of one device,
// so that arguments and results on groups are taken apart for it and put together for its caller.
// Used by jit.cpp alone.
#pragma once

#include <string>
#include <vector>

#include "tensor/impl.h"

namespace tuff::detail {

class JitParts {
 public:
  // The call's arguments, each on one device. A group's ones are realized where the function is
  // going to run, and have to be where it is replayed: InvalidArgument, also if one lies otherwise
  // than when the function was captured.
  const std::vector<Tensor>& taken_apart(const std::vector<Tensor>& given, bool replays);
  // Arguments for the function, of those that the Jit holds.
  std::vector<Tensor> arguments(const std::vector<Tensor>& apart) const;
  // The function's results, each on one device; all is realized if one is on a group.
  std::vector<Tensor> results(const std::vector<Tensor>& made);
  // Results for the caller; `apart` itself if none is on a group.
  const std::vector<Tensor>& put_together(const std::vector<Tensor>& apart);
  // Before a replay: results that only this holds may be overwritten.
  void let_go() {
    together_.clear();
    apart_.clear();
  }
  // Whether an argument of the call is on a group.
  bool any_argument() const { return !given_.empty(); }

 private:
  struct Layout {
    std::string group;  // "": one device
    ir::Shape shape;    // of the whole
    ir::Arg axis;
    size_t count = 1;
    bool operator==(const Layout&) const = default;
  };
  static Layout layout_of(const Tensor& t);
  static void append_parts(const Tensor& t, std::vector<Tensor>& out);

  std::vector<Tensor> given_;  // of the call that runs the function; empty: none is on a group
  std::vector<Layout> given_as_, made_as_;
  std::vector<Tensor> apart_, together_;
};

}  // namespace tuff::detail
