// ObjectCalls: where objects of a GPU are made, asked and freed: NVIDIA's kernel driver by
// ioctls (Client, rm/calls.h), or, without one, the firmware of the GPU's system processor by calls
// in memory (GspCalls, pci/gsp_calls.h). Object keeps what was made. Knows no class and no control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "base/os_nvrm.h"

namespace tuff::devices::nv {

namespace nvrm = os::nvrm;

// Thread-safe. Calls throw what fail_call (rm/calls.h) makes of a status.
class ObjectCalls {
 public:
  virtual ~ObjectCalls() = default;
  virtual nvrm::Handle root() const = 0;
  // What is in `parameters` is copied in, and comes back.
  virtual nvrm::Handle alloc(nvrm::Handle parent, uint32_t object_class, const char* name,
                             std::span<std::byte> parameters) = 0;
  virtual void free(nvrm::Handle parent, nvrm::Handle object) noexcept = 0;
  virtual void control(nvrm::Handle object, uint32_t command, const char* name,
                       std::span<std::byte> parameters) const = 0;
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void control(nvrm::Handle object, uint32_t command, const char* name, T& parameters) const {
    control(object, command, name, std::as_writable_bytes(std::span(&parameters, 1)));
  }
};

// An object, freed with this one: those beneath it have to be gone.
class Object {
 public:
  template <class T>
  Object(std::shared_ptr<ObjectCalls> calls, nvrm::Handle parent, uint32_t object_class,
         const char* name, T& parameters)
      : Object(std::move(calls), parent, object_class, name,
               std::as_writable_bytes(std::span(&parameters, 1))) {}
  Object(std::shared_ptr<ObjectCalls> calls, nvrm::Handle parent, uint32_t object_class,
         const char* name, std::span<std::byte> parameters = {})
      : calls_(std::move(calls)),
        parent_(parent),
        handle_(calls_->alloc(parent, object_class, name, parameters)) {}
  ~Object() { calls_->free(parent_, handle_); }
  Object(const Object&) = delete;
  nvrm::Handle handle() const { return handle_; }

 private:
  std::shared_ptr<ObjectCalls> calls_;
  nvrm::Handle parent_, handle_;
};

}  // namespace tuff::devices::nv
