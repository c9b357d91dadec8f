// What every runner of kernels of a dialect with workgroups must compute: shapes, every op of every
// dtype, hand-made lists, against the meaning of their ASTs and the evaluation of the lists. Called
// by the tests that run the text on the host, and by those that interpret machine code.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "render/renderer.h"

namespace tuff::render {

class KernelRunner {
 public:
  virtual ~KernelRunner() = default;
  // Runs every workgroup; arguments as in the argument block.
  virtual void run(const Source& source, std::span<const std::span<uint8_t>> buffers,
                   std::span<const int32_t> scalars, std::array<uint32_t, 3> groups) = 0;
};
// Takes all kernels that are to be run.
using MakeRunner =
    std::function<std::unique_ptr<KernelRunner>(std::span<const Source>, const Target&)>;

void expect_shapes(const Target& target, const MakeRunner& make);
void expect_every_op_of_every_dtype(const Target& target, const MakeRunner& make);
void expect_hand_made_lists(const Target& target, const MakeRunner& make);

}  // namespace tuff::render
