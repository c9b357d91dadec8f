#include "io/tensor_pieces.h"

#include <algorithm>

#include "engine/buffer.h"
#include "ir/walk.h"
#include "tensor/impl.h"

namespace tuff::io {
namespace {

void read_pieces(uint64_t size_bytes, const engine::Contents::Reader& read, const ByteSink& sink) {
  std::vector<uint8_t> memory(std::min(size_bytes, kTensorPieceBytes));
  for (uint64_t at = 0; at < size_bytes; at += memory.size()) {
    const auto piece = std::span(memory).first(std::min<uint64_t>(memory.size(), size_bytes - at));
    read(std::as_writable_bytes(piece));
    sink(piece);
  }
}

// The same, computed from contents of its own: what a graph reads of a file stays in memory as long
// as the tensor that was loaded is held. Without such contents, or where the graph writes to
// memory, the tensor itself.
Tensor computed_apart(const Tensor& tensor) {
  const detail::BuildGuard section;
  const ir::UOp& root = tensor.impl()->uop;
  ir::UOpMap<ir::UOp> apart;
  for (const ir::Node* n : ir::toposort(root)) {
    if (n->op == ir::Op::Assign) return tensor;
    if (n->op != ir::Op::Buffer) continue;
    const ir::UOp node(n);
    const Ref<engine::Buffer> b = detail::buffer_of(node);
    if (const auto contents = b->unread())
      apart.emplace(node, ir::buffer(engine::Buffer::filled_from(b->shared_device(), b->dtype,
                                                               b->count, *contents)));
  }
  if (apart.empty()) return tensor;
  return detail::wrap(ir::substitute(root, apart), tensor.device());
}

}  // namespace

void for_each_piece(const Tensor& tensor, const ByteSink& sink) {
  const uint64_t size = uint64_t(int64_t(tensor.numel())) * size_bytes(tensor.dtype());
  if (size == 0) return;
  if (const Ref<engine::Buffer> b = detail::buffer_of(tensor))
    if (const auto contents = b->unread()) return read_pieces(size, contents->begin(), sink);
  const Tensor computed = computed_apart(tensor);
  detail::require_host_read("save", computed);
  const Ref<engine::Buffer> memory = detail::memory_of(computed);
  uint64_t at = 0;
  const auto read = [&](std::span<std::byte> piece) {
    engine::Buffer::view(memory, DType::U8, int64_t(piece.size()), at)->copyout(piece.data());
    at += piece.size();
  };
  read_pieces(size, read, sink);
}

}  // namespace tuff::io
