#include "tensor/lent_device.h"

#include "base/check.h"
#include "tensor/dft.h"
#include "tensor/impl.h"

namespace tuff::detail {

std::string LentDevices::next_name() { return fmt::format("{}:app{}", kind_, opened_++); }

void LentDevices::require(std::string_view what, const std::string& device) const {
  if (!device.starts_with(fmt::format("{}:app", kind_)))
    fail<InvalidArgument>("{}: {} is no application's device: give the name from {}()", what,
                          device, open_);
}

void LentDevices::close(const std::string& device, std::string_view remedy) const {
  require(close_, device);
  drop_generator(device);
  drop_tables(device);
  const engine::Holders left = engine::close_device(device);
  if (left.count > 0)
    fail<InvalidArgument>(
        "{}: {} is still in use, by the memory of {} tensors or graphs ({} bytes of its own in "
        "all): {}",
        close_, device, left.count, left.bytes, remedy);
}

Realized realized_on(std::string_view kind, std::string_view what, const Tensor& given) {
  Tensor t(given);
  if (!t.defined()) fail<InvalidArgument>("{}: an undefined tensor", what);
  if (!t.device().starts_with(fmt::format("{}:", kind)))
    fail<InvalidArgument>("{}: the tensor is on {}: to(\"{}\") it, or from_blob() there", what,
                          t.device(), kind);
  t.realize();
  const Ref<engine::Buffer> buffer = buffer_of(t);
  buffer->on().hcq().liveness().require_open();
  buffer->known_integers().close();
  buffer->span();  // its last use comes after what is read into it
  return {buffer->shared_device(), buffer};
}

void host_waits(const Tensor& tensor, uint64_t value) {
  if (const Ref<engine::Buffer> buffer = buffer_of(tensor)) buffer->uses().until(value);
}

}  // namespace tuff::detail
