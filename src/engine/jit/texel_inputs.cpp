#include "engine/jit/texel_inputs.h"

#include "engine/cache/program_cache.h"
#include "engine/jit/rebind.h"

namespace tuff::engine {
namespace {

class TexelInputs {
 public:
  explicit TexelInputs(std::span<const Ref<Buffer>> inputs)
      : inputs_(inputs), own_(inputs.begin(), inputs.end()), copied_(inputs.size()) {}

  void add(BoundCall call) {
    if (auto* k = std::get_if<BoundKernel>(&call)) {
      for (const render::TexelView& t : k->kernel->program->args().texels)
        read_own(k->buffers.at(t.argument));
      for (size_t i = 0; i < k->buffers.size(); i++)
        if (k->kernel->buffers[i].written) forget(*k->buffers[i]);
    } else {
      forget(*std::get<BoundCopy>(call).dst);
    }
    out_.push_back(std::move(call));
  }
  std::vector<BoundCall> take() { return std::move(out_); }

 private:
  void read_own(Ref<Buffer>& b) {
    const int32_t slot = input_slot(*b, inputs_);
    if (slot < 0) return;
    const Ref<Buffer>& in = inputs_[size_t(slot)];
    Ref<Buffer>& own = own_[size_t(slot)];
    if (own == in) own = make_ref<Buffer>(in->shared_device(), in->dtype, in->count);
    if (!copied_[size_t(slot)]) out_.push_back(BoundCopy{own, in});
    copied_[size_t(slot)] = true;
    rebind(b, inputs_, own_);
  }
  void forget(const Buffer& written) {
    const int32_t slot = input_slot(written, inputs_);
    if (slot >= 0) copied_[size_t(slot)] = false;
  }

  std::span<const Ref<Buffer>> inputs_;
  std::vector<Ref<Buffer>> own_;  // the input itself where none is needed
  std::vector<bool> copied_;      // own_ has what the input has at this call
  std::vector<BoundCall> out_;
};

}  // namespace

std::vector<BoundCall> copy_before_texels(std::vector<BoundCall> calls,
                                          std::span<const Ref<Buffer>> inputs) {
  TexelInputs texels(inputs);
  for (BoundCall& c : calls) texels.add(std::move(c));
  return texels.take();
}

}  // namespace tuff::engine
