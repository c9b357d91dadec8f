#include "tensor/jit_parts.h"

#include <algorithm>

#include "base/check.h"
#include "ir/device_group.h"
#include "tensor/shards.h"

namespace tuff::detail {
namespace {

bool on_group(const Tensor& t) { return t.defined() && ir::is_group(t.impl()->device); }

}  // namespace

JitParts::Layout JitParts::layout_of(const Tensor& t) {
  if (!on_group(t)) return {};
  const auto node = uop(t);
  const ir::Node* shards = shards_of(node);
  if (!shards) return {};
  return {t.impl()->device, shards->shape, shards->arg, shards->src_count};
}

void JitParts::append_parts(const Tensor& t, std::vector<Tensor>& out) {
  if (!on_group(t)) return out.push_back(t);
  const BuildGuard section;
  const auto node = uop(t);
  for (const ir::UOp& part : shards_of(node)->src()) out.push_back(wrap(part, *part->device));
}

const std::vector<Tensor>& JitParts::taken_apart(const std::vector<Tensor>& given, bool replays) {
  if (!ir::any_group()) return given;
  const bool any = std::ranges::any_of(given, on_group);
  if (!any && (!replays || given_as_.empty())) {
    given_.clear();
    given_as_.clear();
    return given;
  }
  std::vector<Tensor>& out = apart_;
  std::vector<Layout> layouts;
  for (size_t i = 0; i < given.size(); i++) {
    if (on_group(given[i]) && !replays) Tensor(given[i]).realize();
    if (on_group(given[i]) && buffers_of_shards(uop(given[i])).empty())
      fail<InvalidArgument>("Jit: argument {} is not realized", i);
    layouts.push_back(layout_of(given[i]));
    append_parts(given[i], out);
  }
  if (!replays) {
    given_ = given;
    given_as_ = std::move(layouts);
    return out;
  }
  for (size_t i = 0; i < layouts.size() && i < given_as_.size(); i++) {
    if (layouts[i] == given_as_[i]) continue;
    fail<InvalidArgument>(
        "Jit: argument {} lies otherwise than when captured: it is {} on {}: shard() it as then", i,
        text(given[i].sizes()), given[i].device());
  }
  if (layouts.size() != given_as_.size())
    fail<InvalidArgument>("Jit: captured with {} arguments, called with {}", given_as_.size(),
                          layouts.size());
  return out;
}

std::vector<Tensor> JitParts::arguments(const std::vector<Tensor>& apart) const {
  if (given_.empty()) return apart;
  std::vector<Tensor> out;
  size_t at = 0;
  for (size_t i = 0; i < given_.size(); i++) {
    out.push_back(given_as_[i].group.empty() ? apart[at] : given_[i]);
    at += given_as_[i].count;
  }
  return out;
}

std::vector<Tensor> JitParts::results(const std::vector<Tensor>& made) {
  made_as_.clear();
  if (!ir::any_group() || std::ranges::none_of(made, on_group)) return made;
  std::vector<Tensor> all = pending_assigns(), out;
  for (const Tensor& t : made)
    if (t.defined()) all.push_back(t);
  Tensor::realize(all);
  for (const Tensor& t : made) {
    made_as_.push_back(layout_of(t));
    append_parts(t, out);
  }
  return out;
}

const std::vector<Tensor>& JitParts::put_together(const std::vector<Tensor>& apart) {
  given_.clear();
  if (made_as_.empty()) return apart;
  const BuildGuard section;
  together_.clear();
  size_t at = 0;
  for (const Layout& as : made_as_) {
    if (as.group.empty()) {
      together_.push_back(apart[at++]);
      continue;
    }
    std::vector<ir::UOp> parts;
    for (size_t i = 0; i < as.count; i++) parts.push_back(uop(apart[at++]));
    together_.push_back(
        wrap(ir::make(ir::Op::Shards, parts[0]->dtype, parts, as.axis), as.group));
  }
  return together_;
}

}  // namespace tuff::detail
