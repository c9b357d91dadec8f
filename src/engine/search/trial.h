// Trial: memory for one kernel's arguments, so that versions of it can be run, timed by the
// device's clock and compared. Called by beam. Must never know how a version was made.
#pragma once

#include <vector>

#include "hcq/device.h"
#include "kernel/lowered.h"

namespace tuff::engine {

class Trial {
 public:
  // Allocates what the kernel's arguments need, filled with numbers that are right for any input:
  // floats of -1..1, integers that are 0 or 1 and so index anything of two elements.
  Trial(hcq::Device& device, const kernel::LinearKernel& kernel);
  ~Trial();
  Trial(const Trial&) = delete;
  bool is_possible() const { return possible_; }  // not where sizes or scalars are symbolic

  // Runs it; what it stores is what others are compared with. False if it stores nothing that can
  // be compared.
  bool set_reference(const hcq::Program& program, const kernel::LinearKernel& kernel);
  // The fastest of a few launches, in ns. Gives up after the first launch where that takes longer
  // than `limit_ns`. Contents are those of the constructor before each.
  double time(const hcq::Program& program, const kernel::LinearKernel& kernel, double limit_ns);
  // Whether what the last one stored is the reference's: integers and moved values exactly, floats
  // within what another order of additions may change.
  bool is_right();

 private:
  struct Argument {
    hcq::Span span;
    DType dtype;
    bool written = false;
    std::vector<std::byte> before, reference;
  };
  void reset();
  double run(const hcq::Program& program, const kernel::LinearKernel& kernel);
  std::vector<std::byte> read(const Argument& a);

  hcq::Device& device_;
  std::vector<Argument> arguments_;
  double terms_ = 1;
  bool possible_ = true;
};

}  // namespace tuff::engine
