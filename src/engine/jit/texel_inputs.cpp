#include "engine/jit/texel_inputs.h"

#include <algorithm>

#include "engine/program/program_cache.h"
#include "engine/jit/rebind.h"

namespace tuff::engine {
namespace {

// Copies of inputs before the kernels that read them through views.
class TexelCopies {
 public:
  explicit TexelCopies(std::span<const Ref<Buffer>> inputs)
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

Ref<Buffer> placeholder(const Buffer& b) {
  return make_ref<Buffer>(b.shared_device(), b.dtype, b.count);
}

// Of one call: marks the inputs that it reads through views, and those that it writes.
void note_uses(const BoundCall& c, std::span<const Ref<Buffer>> inputs, std::vector<bool>& viewed,
               std::vector<bool>& written) {
  const auto note = [&](std::vector<bool>& marks, const Buffer& b) {
    if (const int32_t slot = input_slot(b, inputs); slot >= 0) marks[size_t(slot)] = true;
  };
  if (auto* k = std::get_if<BoundKernel>(&c)) {
    for (const render::TexelView& t : k->kernel->program->args().texels)
      note(viewed, *k->buffers.at(t.argument));
    for (size_t i = 0; i < k->buffers.size(); i++)
      if (k->kernel->buffers[i].written) note(written, *k->buffers[i]);
  } else {
    note(written, *std::get<BoundCopy>(c).dst);
  }
}

}  // namespace

TexelInputs::TexelInputs(std::vector<BoundCall> calls, std::span<const Ref<Buffer>> inputs)
    : calls_(std::move(calls)), own_(inputs.begin(), inputs.end()), fixed_(inputs.size()) {
  find_fixed(inputs);
  patched_ = own_;
  if (!uses_any_where_it_is()) return;
  for (Ref<Buffer>& b : own_) b = placeholder(*b);
  patched_ = own_;
  for (size_t i = 0; i < inputs.size(); i++)
    if (fixed_[i]) patched_[i] = placeholder(*inputs[i]);
  for (BoundCall& c : calls_) rebind(c, inputs, own_);
}

void TexelInputs::find_fixed(std::span<const Ref<Buffer>> inputs) {
  std::vector<bool> viewed(inputs.size()), written(inputs.size());
  for (const BoundCall& c : calls_) {
    if (!device_of(c).target().features.device_address) return;  // these are bound as a whole
  }
  for (const BoundCall& c : calls_) note_uses(c, inputs, viewed, written);
  for (size_t i = 0; i < inputs.size(); i++) {
    // Of two that share memory either may move alone.
    const bool shared = std::count_if(inputs.begin(), inputs.end(), [&](const Ref<Buffer>& b) {
                          return &b->root() == &inputs[i]->root();
                        }) > 1;
    if (viewed[i] && !written[i] && !shared) fixed_[i] = inputs[i];
  }
}

bool TexelInputs::uses_any_where_it_is() const {
  return std::any_of(fixed_.begin(), fixed_.end(), [](const Ref<Buffer>& b) { return bool(b); });
}

std::vector<BoundCall> TexelInputs::calls() const {
  std::vector<Ref<Buffer>> memory = own_;
  for (size_t i = 0; i < fixed_.size(); i++)
    if (fixed_[i]) memory[i] = fixed_[i];
  TexelCopies copies(patched_);
  for (BoundCall c : calls_) {
    rebind(c, own_, memory);
    copies.add(std::move(c));
  }
  return copies.take();
}

bool TexelInputs::note_those_moved(std::span<const Ref<Buffer>> given) {
  bool moved = false;
  for (size_t i = 0; i < fixed_.size(); i++) {
    Ref<Buffer>& at = fixed_[i];
    if (!at || (at->span().address() == given[i]->span().address() &&
                at->size_bytes() == given[i]->size_bytes()))
      continue;
    at = {};
    patched_[i] = own_[i];
    moved = true;
  }
  return moved;
}

}  // namespace tuff::engine
