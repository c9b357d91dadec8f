#include "dlpack_capsules.h"

#include <charconv>
#include <memory>
#include <tuple>

#include "base/check.h"
#include "devices/cuda_interop.h"
#include "dlpack.h"
#include "engine/buffer.h"
#include "interpreter.h"
#include "tensor/impl.h"

namespace tuff::python {
namespace {

using py::arg;

struct TypeRow {
  DType dtype;
  uint8_t code, bits;
};
constexpr TypeRow kTypes[] = {
    {DType::Bool, dlpack::kBool, 8},    {DType::I8, dlpack::kInt, 8},
    {DType::U8, dlpack::kUInt, 8},      {DType::I16, dlpack::kInt, 16},
    {DType::U16, dlpack::kUInt, 16},    {DType::I32, dlpack::kInt, 32},
    {DType::U32, dlpack::kUInt, 32},    {DType::I64, dlpack::kInt, 64},
    {DType::U64, dlpack::kUInt, 64},    {DType::F16, dlpack::kFloat, 16},
    {DType::BF16, dlpack::kBfloat, 16}, {DType::F32, dlpack::kFloat, 32},
    {DType::F64, dlpack::kFloat, 64},   {DType::F8E4M3FN, dlpack::kFloat8E4m3fn, 8},
    {DType::F8E5M2, dlpack::kFloat8E5m2, 8},
};

DType dtype_of(const dlpack::DataType& d) {
  for (const TypeRow& row : kTypes) {
    if (row.code == d.code && row.bits == d.bits && d.lanes == 1) return row.dtype;
  }
  fail<InvalidArgument>("from_dlpack: no dtype has code {}, {} bits and {} lanes", d.code, d.bits,
                        d.lanes);
}

dlpack::DataType type_of(DType t) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == t) return {row.code, row.bits, 1};
  }
  fail<InternalError>("{} has no row in DLPack's table", name(t));
}

// ---- devices

// Whose memory is a handle of the driver.
struct DriverRow {
  dlpack::DeviceType type;
  std::string_view prefix;  // of tuff's names
  const char* object;       // the type of the handle
  uint64_t alignment;       // of a tensor in it, in bytes; 0: an element's
  bool is_address = false;  // the handle: a tensor begins at one of its own
};
constexpr DriverRow kDrivers[] = {{dlpack::kVulkan, "VULKAN:", "VkBuffer", 64},
                                  {dlpack::kOpencl, "CL:", "cl_mem", 0},
                                  {dlpack::kCuda, "CUDA:", "address", 0, true}};

const DriverRow* driver_of(int32_t device_type) {
  for (const DriverRow& row : kDrivers)
    if (row.type == device_type) return &row;
  return nullptr;
}

// Of "CPU" and of the devices VULKAN:0 ... that tuff has opened; others have no number of DLPack's.
std::optional<dlpack::Device> device_of(const std::string& name) {
  if (name == "CPU") return dlpack::Device{dlpack::kCpu, 0};
  for (const DriverRow& row : kDrivers) {
    if (!name.starts_with(row.prefix)) continue;
    int32_t id = 0;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + row.prefix.size(), end, id);
    if (error == std::errc() && stop == end) return dlpack::Device{row.type, id};
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const std::string& why) {
  PyErr_SetString(PyExc_BufferError, why.c_str());
  throw py::error_already_set();
}

dlpack::Device require_device(const Tensor& t) {
  const auto device = device_of(t.device());
  if (!device) refuse("the tensor is on " + t.device() + ": to(\"CPU\") it first");
  return *device;
}

// ---- streams, of CUDA alone
// The protocol's numbers are CUDA's own: 1 the legacy default stream, which None means too, 2 that
// of the calling thread, above them handles. -1: nobody waits; 0 might be any of them.

hcq::Device& hcq_of(const dlpack::Device& device) {
  return engine::Device::get(fmt::format("{}{}", driver_of(device.type)->prefix, device.id))->hcq();
}

// What the consumer enqueues in its stream comes after what made the tensor.
void order_before(const py::object& stream, const Tensor& t, const dlpack::Device& device) {
  if (device.type != dlpack::kCuda) {
    if (!stream.is_none())
      fail<InvalidArgument>("__dlpack__: {} has no streams: pass None", t.device());
    return wait_for(t);
  }
  const int64_t number =
      stream.is_none() ? int64_t(devices::kCudaLegacyStream) : stream.cast<int64_t>();
  if (number < -1 || number == 0)
    fail<InvalidArgument>(
        "__dlpack__: stream {}: 1 is the legacy default stream, 2 the thread's, above them a "
        "stream's handle, -1 none",
        number);
  const Unlocked unlocked;
  detail::memory_of(t)->span();
  if (number > 0) devices::cuda_stream_waits(hcq_of(device), uint64_t(number));
}

// ---- export

// A capsule's tensor with what it points to.
template <class Managed>
struct Exported {
  Managed managed{};
  Ref<engine::Buffer> memory;
  std::vector<int64_t> shape, strides;
};

template <class Managed>
std::unique_ptr<Exported<Managed>> exported(const Tensor& t) {
  auto e = std::make_unique<Exported<Managed>>();
  e->memory = detail::buffer_of(t);
  e->memory->known_integers().close();
  e->shape = t.sizes();
  e->strides.assign(e->shape.size(), 1);
  for (size_t i = e->shape.size(); i-- > 1;) e->strides[i - 1] = e->strides[i] * e->shape[i];
  const dlpack::Device device = require_device(t);
  const bool on_host = device.type == dlpack::kCpu;
  hcq::Adoption::NativePart part;
  if (!on_host) part = e->memory->on().hcq().adoption()->native_part(e->memory->span());
  e->managed.dl_tensor = {.data = on_host ? t.data_ptr() : reinterpret_cast<void*>(part.handle),
                          .device = device,
                          .ndim = int32_t(e->shape.size()),
                          .dtype = type_of(t.dtype()),
                          .shape = e->shape.data(),
                          .strides = e->strides.data(),
                          .byte_offset = part.offset};
  e->managed.manager_ctx = e.get();
  e->managed.deleter = [](Managed* m) { delete static_cast<Exported<Managed>*>(m->manager_ctx); };
  return e;
}

// Of a capsule that nobody took.
template <class Managed>
void drop(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed->deleter) managed->deleter(managed);
}

template <class Managed>
py::object capsule_of(std::unique_ptr<Exported<Managed>> e, const char* name,
                      PyCapsule_Destructor destructor) {
  PyObject* capsule = PyCapsule_New(&e->managed, name, destructor);
  if (capsule == nullptr) throw py::error_already_set();
  e.release();
  return py::reinterpret_steal<py::object>(capsule);
}

py::object to_dlpack(Tensor given, const py::object& stream,
                     const std::optional<std::pair<uint32_t, uint32_t>>& max_version,
                     const std::optional<std::pair<int32_t, int32_t>>& dl_device,
                     std::optional<bool> copy) {
  bool moved = false;
  if (dl_device && *dl_device == std::pair<int32_t, int32_t>(dlpack::kCpu, 0)) {
    moved = given.device() != "CPU";
    if (!moved && !stream.is_none())
      fail<InvalidArgument>("__dlpack__: {} has no streams: pass None", given.device());
    if (moved && copy == false) refuse("__dlpack__: the CPU gets a copy of the tensor alone");
    given = given.to("CPU");
  }
  const dlpack::Device device = require_device(given);
  if (dl_device && *dl_device != std::pair<int32_t, int32_t>(device.type, device.id))
    refuse(fmt::format("__dlpack__: the tensor is on {}, device ({}, {})", given.device(),
                       device.type, device.id));
  if (given.requires_grad())
    refuse("__dlpack__: the tensor has requires_grad, which others know nothing of: detach() it");
  using Pair = std::pair<uint32_t, uint32_t>;
  if (is_float8(given.dtype()) && max_version.value_or(Pair(0, 0)) < Pair(1, 1))
    refuse(fmt::format("__dlpack__: versions of DLPack before 1.1 have no {}: pass "
                       "max_version=(1, 1), or bitcast(\"uint8\") the tensor",
                       name(given.dtype())));
  const bool copies = moved || copy.value_or(false);
  const Tensor t = copies && !moved ? copied(given) : given;
  order_before(moved ? py::none() : stream, t, device);
  detail::require_host_read("__dlpack__", t);
  const bool read_only = detail::buffer_of(t)->read_only();
  if (max_version && max_version->first >= dlpack::kVersion.major) {
    auto e = exported<dlpack::ManagedTensorVersioned>(t);
    e->managed.version = {dlpack::kVersion.major, is_float8(t.dtype()) ? 1u : 0u};
    e->managed.flags = (read_only ? dlpack::kReadOnly : 0) | (copies ? dlpack::kIsCopied : 0);
    return capsule_of(std::move(e), dlpack::kVersionedName, [](PyObject* c) {
      drop<dlpack::ManagedTensorVersioned>(c, dlpack::kVersionedName);
    });
  }
  if (read_only) refuse("__dlpack__: the memory is read-only, which takes max_version=(1, 0)");
  return capsule_of(exported<dlpack::ManagedTensor>(t), dlpack::kLegacyName,
                    [](PyObject* c) { drop<dlpack::ManagedTensor>(c, dlpack::kLegacyName); });
}

// ---- import

// Whose handle another library means the driver cannot be asked: it has to be one that tuff knows,
// or, of OpenCL, an object of the device's context.
Tensor over_native(const DriverRow& driver, const dlpack::Tensor& d, const Sizes& shape,
                   const BlobOptions& blob) {
  const DType dtype = dtype_of(d.dtype);
  const uint64_t alignment = driver.alignment ? driver.alignment : size_bytes(dtype);
  const std::shared_ptr<engine::Device> device =
      engine::Device::get(fmt::format("{}{}", driver.prefix, d.device.id));
  const auto make = [&](int64_t count, size_t lead) {
    uint64_t handle = reinterpret_cast<uint64_t>(d.data), offset = d.byte_offset;
    if (driver.is_address) {
      handle += offset - lead;
      offset = lead;
    }
    const auto over = device->hcq().adoption()->over_native(handle);
    if (!over)
      fail<Unsupported>(
          "from_dlpack: {} is no {} that {} knows: in C++, interop::from_blob() takes it", d.data,
          driver.object, device->name());
    const uint64_t bytes = uint64_t(count) * size_bytes(dtype),
                   begin = offset - lead - over->at;
    try {
      if (lead + over->at > offset || begin > over->block.size_bytes ||
          bytes > over->block.size_bytes - begin)
        fail<InvalidArgument>("from_dlpack: {} bytes at byte {} of a buffer of {}", bytes,
                              offset, over->block.size_bytes);
      if ((begin + over->at) % alignment != 0)
        fail<InvalidArgument>("from_dlpack: a tensor at byte {} of a buffer, not a multiple of {}",
                              begin + over->at, alignment);
    } catch (...) {
      if (over->release) over->release();
      throw;
    }
    hcq::ForeignMemory memory = *over;
    memory.offset = begin;
    memory.after_release([deleter = blob.deleter] { deleter(nullptr); });
    memory.read_only = blob.read_only || over->read_only;
    return engine::Buffer::adopted(device, dtype, count, std::move(memory));
  };
  return detail::tensor_over({shape, blob, {dtype, device->name()}}, make);
}

Tensor over_host_memory(const dlpack::Tensor& d, const Sizes& shape, BlobOptions blob) {
  void* data = d.data ? static_cast<std::byte*>(d.data) + d.byte_offset : nullptr;
  return Tensor::from_blob(data, shape, std::move(blob), {dtype_of(d.dtype), "CPU"});
}

void require_known(int32_t device_type) {
  if (device_type != dlpack::kCpu && !driver_of(device_type))
    fail<Unsupported>(
        "from_dlpack: memory of device type {}, neither the CPU's nor CUDA's nor Vulkan's nor "
        "OpenCL's: move it there first",
        device_type);
}

// The tensor of a capsule that has been taken. It is given back later, by the main thread: what its
// owner does then may need the interpreter's lock.
template <class Managed>
Tensor taken(py::handle capsule, const char* name, const char* used_name, bool read_only) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (managed == nullptr) throw py::error_already_set();
  const dlpack::Tensor& d = managed->dl_tensor;
  require_known(d.device.type);
  const std::vector<int64_t> shape(d.shape, d.shape + d.ndim);
  BlobOptions blob{.read_only = read_only};
  if (d.strides) blob.strides.assign(d.strides, d.strides + d.ndim);
  blob.deleter = [managed](void*) {
    release_later([managed] {
      if (managed->deleter) managed->deleter(managed);
    });
  };
  const DriverRow* driver = driver_of(d.device.type);
  const Tensor t =
      driver ? over_native(*driver, d, shape, blob) : over_host_memory(d, shape, std::move(blob));
  PyCapsule_SetName(capsule.ptr(), used_name);
  return t;
}

// What tuff does from now on comes after what a stream was given: the producer's, or the one that
// has waited for it.
void order_after(uint64_t stream, const dlpack::Device& device) {
  if (device.type != dlpack::kCuda) return;
  const Unlocked unlocked;
  devices::cuda_wait_for_stream(hcq_of(device), stream);
}

Tensor from_capsule(py::handle capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::kVersionedName)) {
    const auto* m = static_cast<const dlpack::ManagedTensorVersioned*>(
        PyCapsule_GetPointer(capsule.ptr(), dlpack::kVersionedName));
    if (m->version.major != dlpack::kVersion.major)
      fail<Unsupported>("from_dlpack: version {}.{} of DLPack, tuff knows {}.x", m->version.major,
                        m->version.minor, dlpack::kVersion.major);
    return taken<dlpack::ManagedTensorVersioned>(capsule, dlpack::kVersionedName,
                                                 dlpack::kUsedVersionedName,
                                                 (m->flags & dlpack::kReadOnly) != 0);
  }
  if (!PyCapsule_IsValid(capsule.ptr(), dlpack::kLegacyName))
    fail<InvalidArgument>("from_dlpack: the capsule holds no tensor, or was taken before");
  return taken<dlpack::ManagedTensor>(capsule, dlpack::kLegacyName, dlpack::kUsedLegacyName, false);
}

// Who knows nothing of versions, or of streams, refuses the argument. `stream`: which has waited for
// the producer's work then; without one that is the legacy default stream.
py::object capsule_from(const py::object& object, uint64_t& stream) {
  const py::object method = object.attr("__dlpack__");
  const py::tuple version = py::make_tuple(dlpack::kVersion.major, dlpack::kVersion.minor);
  const auto tried = [&](const py::kwargs& options) -> py::object {
    try {
      return method(**options);
    } catch (py::error_already_set& e) {
      if (!e.matches(PyExc_TypeError)) throw;
    }
    return {};
  };
  if (stream) {
    if (py::object c = tried(py::dict(arg("stream") = stream, arg("max_version") = version)))
      return c;
    if (py::object c = tried(py::dict(arg("stream") = stream))) return c;
    stream = devices::kCudaLegacyStream;
  }
  if (py::object c = tried(py::dict(arg("max_version") = version))) return c;
  return method();
}

}  // namespace

Tensor from_dlpack(const py::object& object) {
  release_waiting();
  if (PyCapsule_CheckExact(object.ptr())) {
    const Tensor t = from_capsule(object);
    if (const auto device = device_of(t.device())) order_after(devices::kCudaLegacyStream, *device);
    return t;
  }
  if (PyType_Check(object.ptr()) || !py::hasattr(object, "__dlpack__"))
    throw py::type_error("from_dlpack: " + type_name(object) +
                         " has no __dlpack__: pass an array or a capsule");
  dlpack::Device device{};
  uint64_t stream = 0;
  if (py::hasattr(object, "__dlpack_device__")) {
    std::tie(device.type, device.id) =
        object.attr("__dlpack_device__")().cast<std::pair<int32_t, int32_t>>();
    require_known(device.type);
    if (device.type == dlpack::kCuda) stream = devices::cuda_stream(hcq_of(device));
  }
  const py::object capsule = capsule_from(object, stream);
  const Tensor t = from_capsule(capsule);
  order_after(stream ? stream : devices::kCudaLegacyStream,
              device_of(t.device()).value_or(device));
  return t;
}

void bind_dlpack(py::module_& m, TensorClass& c) {
  m.def("from_dlpack", &from_dlpack, arg("x"),
        "A tensor over the memory of another library's, which is kept as long as it is in use. A "
        "write on one side is seen on the other.");
  c.def("__dlpack__", &to_dlpack, py::kw_only(), arg("stream") = py::none(),
        arg("max_version") = py::none(), arg("dl_device") = py::none(), arg("copy") = py::none());
  c.def("__dlpack_device__", [](const Tensor& t) {
    const dlpack::Device device = require_device(t);
    return std::pair<int, int>(device.type, device.id);
  });
}

}  // namespace tuff::python
