// Memory that tuff and Python share: the buffer protocol both ways, NumPy's arrays through it.
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/check.h"
#include "dlpack_capsules.h"
#include "engine/buffer.h"
#include "interpreter.h"
#include "module.h"
#include "tensor/impl.h"

namespace tuff::python {
namespace {

using py::arg;

// The letters of Python's struct module, with the sizes that the machine gives them.
struct Format {
  char letter;
  DType dtype;
};
constexpr Format kFormats[] = {
    {'?', DType::Bool}, {'b', DType::I8},  {'B', DType::U8},  {'h', DType::I16}, {'H', DType::U16},
    {'i', DType::I32},  {'I', DType::U32}, {'q', DType::I64}, {'Q', DType::U64}, {'e', DType::F16},
    {'f', DType::F32},  {'d', DType::F64}, {'l', DType::I64}, {'L', DType::U64},
};

const char* format_of(DType t) {
  static constexpr auto texts = [] {
    std::array<std::array<char, 2>, std::size(kFormats)> out{};
    for (size_t i = 0; i < out.size(); i++) out[i] = {kFormats[i].letter, '\0'};
    return out;
  }();
  for (size_t i = 0; i < std::size(kFormats); i++) {
    if (kFormats[i].dtype == t) return texts[i].data();
  }
  return nullptr;
}

DType dtype_of(const Py_buffer& view) {
  const std::string format = view.format ? view.format : "B";
  const size_t at = !format.empty() && (format[0] == '@' || format[0] == '=' || format[0] == '<');
  for (const Format& f : kFormats) {
    // "l" has 8 bytes as the machine's long, 4 in the standard sizes of "=" and "<".
    if (format.size() != at + 1 || format[at] != f.letter) continue;
    if (view.itemsize == Py_ssize_t(size_bytes(f.dtype))) return f.dtype;
    if (f.letter == 'l') return DType::I32;
    if (f.letter == 'L') return DType::U32;
  }
  fail<InvalidArgument>("elements of format \"{}\" and {} bytes are none of tuff's", format,
                        view.itemsize);
}

// A view of an object's memory; given back with the interpreter's lock.
class View {
 public:
  View(py::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw py::error_already_set();
  }
  ~View() { PyBuffer_Release(&view_); }
  View(const View&) = delete;
  const Py_buffer& operator*() const { return view_; }
  const Py_buffer* operator->() const { return &view_; }
  Sizes sizes() const { return {view_.shape, view_.shape + view_.ndim}; }

 private:
  Py_buffer view_{};
};

// ---- from Python's memory

Tensor from_blob(const py::object& object, const std::string& device, bool requires_grad,
                 bool in_place) {
  release_waiting();
  auto view = std::make_unique<View>(object, PyBUF_FULL_RO);
  const Py_buffer& v = **view;
  if (v.suboffsets != nullptr &&
      std::any_of(v.suboffsets, v.suboffsets + v.ndim, [](Py_ssize_t s) { return s >= 0; }))
    fail<InvalidArgument>("from_blob: the memory is in pieces: copy it with tensor()");
  BlobOptions blob{.read_only = v.readonly != 0, .in_place = in_place};
  for (int i = 0; i < v.ndim && v.strides != nullptr; i++) {
    if (v.strides[i] % v.itemsize != 0 && v.shape[i] > 1)
      fail<InvalidArgument>("from_blob: a stride of {} bytes is not whole elements of {}",
                            v.strides[i], v.itemsize);
    blob.strides.push_back(v.strides[i] / v.itemsize);
  }
  View* kept = view.get();
  blob.deleter = [kept](void*) { release_later([kept] { delete kept; }); };
  const Tensor t = Tensor::from_blob(v.buf, kept->sizes(), std::move(blob),
                                     {dtype_of(v), device, requires_grad});
  view.release();
  return t;
}

std::vector<std::byte> contiguous_bytes(const View& view) {
  std::vector<std::byte> bytes(size_t(view->len));
  if (PyBuffer_ToContiguous(bytes.data(), &*view, view->len, 'C') != 0)
    throw py::error_already_set();
  return bytes;
}

Tensor from_bytes(const py::object& data, const Sizes& sizes, const TensorOptions& options) {
  const View view(data, PyBUF_FULL_RO);
  int64_t wanted = int64_t(size_bytes(options.dtype));
  for (const Size& s : sizes) wanted *= int64_t(s);
  if (wanted != view->len)
    fail<ShapeError>("from_bytes: {} bytes given for a shape of {}", view->len, wanted);
  const std::vector<std::byte> bytes = contiguous_bytes(view);
  return Tensor::from_bytes(bytes.data(), sizes, options);
}

// ---- from numbers and lists of them

struct Nested {
  std::vector<int64_t> shape;
  std::vector<Number> values;
};

constexpr size_t kDeepest = 64;  // a list may contain itself
constexpr size_t kMostNumbers = size_t(1) << 32;

void flatten(py::handle item, size_t depth, Nested& out) {
  if (const auto number = number_from(item)) {
    if (depth != out.shape.size()) fail<ShapeError>("tensor: lists of different depths");
    out.values.push_back(*number);
    return;
  }
  std::optional<Items> list;
  if (!py::isinstance<Tensor>(item)) list = items_of(item, kMostNumbers);
  if (!list)
    throw py::type_error("tensor: " + type_name(item) +
                         " is neither a number, a list of numbers nor memory");
  const int64_t n = int64_t(list->size());
  if (depth == kDeepest) fail<ShapeError>("tensor: lists of more than {} levels", kDeepest);
  if (depth == out.shape.size()) {
    if (!out.values.empty()) fail<ShapeError>("tensor: lists of different depths");
    out.shape.push_back(n);
  }
  if (out.shape[depth] != n)
    fail<ShapeError>("tensor: lists of {} and {} elements side by side", out.shape[depth], n);
  for (const py::object& inner : *list) flatten(inner, depth + 1, out);
}

DType dtype_of(const std::vector<Number>& values) {
  DType t = values.empty() ? DType::F32 : DType::Bool;
  for (const Number& v : values) t = promote(t, v.dtype());
  t = strengthen(t);
  for (const Number& v : values) {
    if (t == DType::I32 && v.value() != double(int32_t(v.int_value())))
      fail<InvalidArgument>("tensor: {} does not fit int32: say dtype=tuff.int64", v.value());
  }
  return t;
}

Tensor from_nested(const py::object& data, std::optional<DType> dtype, const std::string& device) {
  Nested nested;
  flatten(data, 0, nested);
  const DType t = dtype ? *dtype : dtype_of(nested.values);
  std::vector<std::byte> bytes(nested.values.size() * size_bytes(t));
  for (size_t i = 0; i < nested.values.size(); i++)
    store_scalar(detail::scalar_of(t, nested.values[i]), &bytes[i * size_bytes(t)]);
  return Tensor::from_bytes(bytes.data(), nested.shape, {t, device});
}

bool takes_items(const py::object& o) {
  const PyMappingMethods* mapping = Py_TYPE(o.ptr())->tp_as_mapping;
  return mapping != nullptr && mapping->mp_ass_subscript != nullptr;
}

Tensor tensor(const py::object& data, std::optional<DType> dtype, const std::string& device,
              bool requires_grad) {
  Tensor t;
  if (py::isinstance<Tensor>(data)) {
    const Tensor given = data.cast<Tensor>();
    t = copied(given.detach());
    if (!device.empty()) t = t.to(device);
  } else if (!takes_items(data) && number_from(data)) {  // no array without axes
    t = from_nested(data, dtype, device);
  } else if (PyObject_CheckBuffer(data.ptr())) {
    const View view(data, PyBUF_FULL_RO);
    t = from_bytes(data, view.sizes(), {dtype_of(*view), device});
  } else if (!PyType_Check(data.ptr()) && py::hasattr(data, "__dlpack__")) {
    const Tensor shared = from_dlpack(data);
    t = copied(shared).realize().to(device);
  } else {
    t = from_nested(data, dtype, device);
  }
  if (dtype) t = t.cast(*dtype);
  if (requires_grad) t.set_requires_grad();
  return t;
}

// ---- to Python

// What a view of a tensor's memory keeps until it is released.
struct Exported {
  Ref<engine::Buffer> memory;
  std::vector<Py_ssize_t> shape, strides;
};

int refuse_buffer(Py_buffer* view, const std::string& why) {
  view->obj = nullptr;
  PyErr_SetString(PyExc_BufferError, why.c_str());
  return -1;
}

void fill_view(Py_buffer* view, PyObject* self, const Tensor& t, int flags) {
  wait_for(t);
  auto exported = std::make_unique<Exported>();
  exported->memory = detail::buffer_of(t);
  Py_ssize_t stride = Py_ssize_t(size_bytes(t.dtype()));
  view->len = view->itemsize = stride;
  for (const Size& s : t.sizes()) exported->shape.push_back(int64_t(s));
  exported->strides.resize(exported->shape.size());
  for (size_t i = exported->shape.size(); i-- > 0;) {
    exported->strides[i] = stride;
    stride *= exported->shape[i];
    view->len *= exported->shape[i];
  }
  static char none = 0;  // where a tensor without elements lies
  void* at = t.data_ptr();
  view->buf = at ? at : &none;
  view->readonly = exported->memory->read_only();
  view->ndim = int(exported->shape.size());
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format_of(t.dtype())) : nullptr;
  view->shape = exported->shape.data();
  view->strides = exported->strides.data();
  view->suboffsets = nullptr;
  view->internal = exported.release();
  view->obj = py::handle(self).inc_ref().ptr();
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const Inside inside;
  try {
    const Tensor t = py::handle(self).cast<Tensor>();
    if (t.device() != "CPU")
      return refuse_buffer(view, "the tensor is on " + t.device() + ": to(\"CPU\") it first");
    if (format_of(t.dtype()) == nullptr)
      return refuse_buffer(view, std::string(name(t.dtype())) +
                                     " is no type of Python's buffers: cast(\"float32\") it first");
    if (flags & PyBUF_WRITABLE) {
      wait_for(t);
      if (detail::buffer_of(t)->read_only()) return refuse_buffer(view, "the memory is read-only");
    }
    fill_view(view, self, t, flags);
    return 0;
  } catch (py::error_already_set& e) {
    view->obj = nullptr;
    e.restore();
  } catch (const std::exception& e) {
    return refuse_buffer(view, e.what());
  }
  return -1;
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Exported*>(view->internal); }

// Results are copied in the shape and dtype of the tensor.
void copy_to(const Tensor& t, const py::object& target) {
  const View view(target, PyBUF_ND | PyBUF_WRITABLE);  // C-contiguous
  wait_for(t);
  t.copy_to(view->buf, size_t(view->len));
}

void copy_from(Tensor& t, const py::object& source) {
  const View view(source, PyBUF_FULL_RO);
  const std::vector<std::byte> bytes = contiguous_bytes(view);
  wait_for(t);
  t.copy_from(bytes.data(), bytes.size());
}

// numpy.asarray; looked up once, since importing what is there already takes microseconds.
py::object as_array(const py::object& memory) {
  static const py::handle& function =
      *new py::handle(py::object(py::module_::import("numpy").attr("asarray")).release());
  return function(memory);
}

py::object numpy_array(const Tensor& t) {
  if (format_of(t.dtype()) == nullptr)
    fail<Unsupported>("numpy: NumPy has no {}: cast(\"float32\") the tensor first{}",
                      name(t.dtype()),
                      is_float8(t.dtype()) ? ", or bitcast(\"uint8\") it" : "");
  const py::object self = py::cast(t.device() == "CPU" ? t : t.to("CPU"));
  return as_array(py::memoryview(self));
}

py::object array(const Tensor& t, const py::object& dtype, const py::object& copy) {
  if (copy.is(py::bool_(false)) && t.device() != "CPU")
    fail<InvalidArgument>("the tensor is on {}: NumPy gets a copy of it alone", t.device());
  const py::object a = numpy_array(t);
  const bool wanted = copy.is(py::bool_(true));
  if (dtype.is_none()) return wanted ? a.attr("copy")() : a;
  return a.attr("astype")(dtype, py::arg("copy") = wanted);
}

py::object list_of(const py::object& self) {
  const auto t = self.cast<Tensor>();
  // Of half floats memoryview knows the format and not the values.
  if (format_of(t.dtype()) == nullptr || t.dtype() == DType::F16)
    return py::cast(t.cast(DType::F32)).attr("tolist")();
  if (t.dim() == 0) return self.attr("item")();
  return py::memoryview(t.device() == "CPU" ? self : py::cast(t.to("CPU"))).attr("tolist")();
}

}  // namespace

Tensor tensor_of(const py::handle& data) {
  return tensor(py::reinterpret_borrow<py::object>(data), {}, "", false);
}

void bind_sharing(py::module_& m, TensorClass& c) {
  auto* type = reinterpret_cast<PyHeapTypeObject*>(c.ptr());
  type->as_buffer.bf_getbuffer = &get_buffer;
  type->as_buffer.bf_releasebuffer = &release_buffer;
  type->ht_type.tp_as_buffer = &type->as_buffer;

  m.def("tensor", &tensor, arg("data"), py::kw_only(), arg("dtype") = py::none(),
        arg("device") = "", arg("requires_grad") = false,
        "A copy of numbers, nested lists of them, arrays, other tensors, or any memory.");
  c.def_static(
      "from_blob", &from_blob, arg("data"), py::kw_only(), arg("device") = "CPU",
      arg("requires_grad") = false, arg("in_place") = false,
      "A tensor over the memory of an array, a bytearray, a memoryview, ..., which is kept "
      "as long as it is in use. On the CPU nothing is copied: a write on one side is seen "
      "on the other; assign() is refused where the memory is read-only. With in_place kernels of "
      "another device work on the memory too, where they can and it begins at whole pages.");
  c.def_static(
      "from_bytes",
      [](const py::object& data, const Sizes& sizes, DType dtype, const std::string& device,
         bool requires_grad) { return from_bytes(data, sizes, {dtype, device, requires_grad}); },
      arg("data"), arg("sizes"), py::kw_only(), arg("dtype") = DType::F32, arg("device") = "",
      arg("requires_grad") = false, "Copies row-major bytes of a dtype.");
  c.def_static(
      "from_file",
      [](const std::filesystem::path& path, const Sizes& sizes, DType dtype, uint64_t offset,
         bool mmap) {
        return Tensor::from_file(path.string(), sizes, dtype, offset, {.mmap = mmap});
      },
      arg("path"), arg("sizes"), py::kw_only(), arg("dtype") = DType::F32, arg("offset") = 0,
      arg("mmap") = false,
      "A tensor on \"DISK:PATH\" over what is in a file from byte `offset` on; to() reads it. With "
      "mmap one on the CPU that is a view of the file's pages; assign() gives it memory of its "
      "own.");
  c.def("copy_to", &copy_to, arg("target"), "Writes the bytes into memory of their size; waits.");
  c.def("copy_from", &copy_from, arg("source"),
        "Writes bytes into the memory of a realized tensor, after pending reads.");
  c.def("numpy", &numpy_array, "An array of NumPy; on the CPU it shares the tensor's memory.");
  c.def("__array__", &array, arg("dtype") = py::none(), arg("copy") = py::none());
  c.def("tolist", &list_of, "Nested lists of Python's numbers.");
  bind_dlpack(m, c);
}

}  // namespace tuff::python
