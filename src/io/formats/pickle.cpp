#include "io/formats/pickle.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace tuff::io {
namespace {

enum class Call : uint8_t { None, OrderedDict, Tensor, TensorOfBytes, Bytes, DType, Parameter };

// What a pickle may name; nothing else is accepted.
struct GlobalRow {
  const char* name;
  Call call;
  DType dtype;  // of a storage, or what a dtype is
};
constexpr GlobalRow kGlobals[] = {
    {"collections.OrderedDict", Call::OrderedDict, DType::Void},
    {"torch._utils._rebuild_tensor_v2", Call::Tensor, DType::Void},
    {"torch._utils._rebuild_tensor_v3", Call::TensorOfBytes, DType::Void},
    {"torch._utils._rebuild_parameter", Call::Parameter, DType::Void},
    {"torch.DoubleStorage", Call::None, DType::F64},
    {"torch.FloatStorage", Call::None, DType::F32},
    {"torch.HalfStorage", Call::None, DType::F16},
    {"torch.BFloat16Storage", Call::None, DType::BF16},
    {"torch.LongStorage", Call::None, DType::I64},
    {"torch.IntStorage", Call::None, DType::I32},
    {"torch.ShortStorage", Call::None, DType::I16},
    {"torch.CharStorage", Call::None, DType::I8},
    {"torch.ByteStorage", Call::None, DType::U8},
    {"torch.BoolStorage", Call::None, DType::Bool},
    // Storages of types that came later are bytes, and their tensors say what they hold.
    {"torch.storage.UntypedStorage", Call::Bytes, DType::U8},
    {"torch.float8_e4m3fn", Call::DType, DType::F8E4M3FN},
    {"torch.float8_e5m2", Call::DType, DType::F8E5M2},
    {"torch.uint16", Call::DType, DType::U16},
    {"torch.uint32", Call::DType, DType::U32},
    {"torch.uint64", Call::DType, DType::U64},
};

constexpr uint32_t kMark = std::numeric_limits<uint32_t>::max();
constexpr uint8_t kMaxProtocol = 5;

class Machine {
 public:
  explicit Machine(const ByteSource& source) : r_(source) {
    // Shared by all that push them.
    for (const bool b : {false, true}) add(PickleKind::Bool).number = b;
    add(PickleKind::None);
  }

  Pickle run() {
    for (char code = next(); code != '.'; code = next()) step(code);
    out_.root = pop();
    return std::move(out_);
  }

 private:
  static constexpr uint32_t kNoneValue = 2;

  char next() {
    at_ = r_.offset();
    return char(r_.byte());
  }
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> reason, Args&&... args) const {
    fail_at(r_.source(), at_, reason, std::forward<Args>(args)...);
  }

  PickleValue& add(PickleKind kind) {
    if (out_.values.size() == kMaxPickleValues)
      refuse("more than {} values in a pickle", kMaxPickleValues);
    out_.values.push_back({.kind = kind});
    return out_.values.back();
  }
  PickleValue& push_new(PickleKind kind) {
    push(uint32_t(out_.values.size()));
    return add(kind);
  }
  void push(uint32_t value) {
    if (stack_.size() == kMaxPickleStack) refuse("a stack of more than {}", kMaxPickleStack);
    stack_.push_back(value);
  }
  uint32_t top() const {
    if (stack_.empty() || stack_.back() == kMark) refuse("the stack is empty");
    return stack_.back();
  }
  uint32_t pop() {
    const uint32_t value = top();
    stack_.pop_back();
    return value;
  }
  std::vector<uint32_t> pop_to_mark() {
    const auto mark = std::find(stack_.rbegin(), stack_.rend(), kMark);
    if (mark == stack_.rend()) refuse("a mark is missing");
    std::vector<uint32_t> items(mark.base(), stack_.end());
    stack_.erase(mark.base() - 1, stack_.end());
    return items;
  }
  const PickleValue& value(uint32_t i) const { return out_.values[i]; }
  PickleValue& container(PickleKind kind, const char* what) {
    PickleValue& v = out_.values[top()];
    if (v.kind != kind) refuse("{} without one", what);
    return v;
  }

  void step(char code) {
    if (step_number(code) || step_container(code) || step_memo(code)) return;
    switch (code) {
      case '\x80': {
        const uint8_t protocol = r_.byte();
        if (protocol > kMaxProtocol) refuse("protocol {} of pickle", protocol);
        return;
      }
      case '\x95': r_.skip(sizeof(uint64_t)); return;  // a frame is read like the rest
      case 'X': push_text(r_.text(r_.little<uint32_t>())); return;
      case '\x8c': push_text(r_.text(r_.byte())); return;
      case 'c': {
        std::string name = r_.line();
        global(name + "." + r_.line());
        return;
      }
      case '\x93': {
        const uint32_t name = pop(), module = pop();
        if (value(name).kind != PickleKind::Text || value(module).kind != PickleKind::Text)
          refuse("a global without name");
        global(value(module).text + "." + value(name).text);
        return;
      }
      case 'Q': persistent(); return;
      case 'R': reduce(); return;
      case 'b': build(); return;
      case '0': pop(); return;
      default:
        refuse("the opcode 0x{:02x} is not read; torch.save() writes none such in its default form",
               uint8_t(code));
    }
  }

  bool step_number(char code) {
    switch (code) {
      case 'N': push(kNoneValue); return true;
      case '\x88': push(1); return true;
      case '\x89': push(0); return true;
      case 'J': push_new(PickleKind::Int).number = r_.little<int32_t>(); return true;
      case 'K': push_new(PickleKind::Int).number = r_.byte(); return true;
      case 'M': push_new(PickleKind::Int).number = r_.little<uint16_t>(); return true;
      case '\x8a': push_new(PickleKind::Int).number = long_number(); return true;
      case 'G': push_new(PickleKind::Float).real = r_.big<double>(); return true;
      default: return false;
    }
  }
  bool step_container(char code) {
    switch (code) {
      case '(': push(kMark); return true;
      case '}': push_new(PickleKind::Dict); return true;
      case ']': push_new(PickleKind::List); return true;
      case ')': push_new(PickleKind::Tuple); return true;
      case 't': push_tuple(pop_to_mark()); return true;
      case '\x85':
      case '\x86':
      case '\x87': {
        std::vector<uint32_t> items(size_t(uint8_t(code) - 0x84));
        for (size_t i = items.size(); i-- > 0;) items[i] = pop();
        push_tuple(std::move(items));
        return true;
      }
      case 'a': append({pop()}, PickleKind::List); return true;
      case 'e': append(pop_to_mark(), PickleKind::List); return true;
      case 's': {
        const uint32_t item = pop(), key = pop();
        append({key, item}, PickleKind::Dict);
        return true;
      }
      case 'u': append(pop_to_mark(), PickleKind::Dict); return true;
      default: return false;
    }
  }
  bool step_memo(char code) {
    switch (code) {
      case 'q': remember(r_.byte()); return true;
      case 'r': remember(r_.little<uint32_t>()); return true;
      case '\x94': remember(uint32_t(memo_.size())); return true;
      case 'h': recall(r_.byte()); return true;
      case 'j': recall(r_.little<uint32_t>()); return true;
      default: return false;
    }
  }

  void push_text(std::string text) { push_new(PickleKind::Text).text = std::move(text); }
  void push_tuple(std::vector<uint32_t> items) {
    push_new(PickleKind::Tuple).items = std::move(items);
  }
  void append(const std::vector<uint32_t>& items, PickleKind kind) {
    const bool dict = kind == PickleKind::Dict;
    if (dict && items.size() % 2 != 0) refuse("a key without value");
    PickleValue& v = container(kind, dict ? "a dictionary's items" : "a list's items");
    v.items.insert(v.items.end(), items.begin(), items.end());
  }
  void remember(uint32_t id) {
    memo_[id] = top();
    if (memo_.size() > kMaxPickleValues) refuse("more than {} remembered values", kMaxPickleValues);
  }
  void recall(uint32_t id) {
    const auto found = memo_.find(id);
    if (found == memo_.end()) refuse("nothing was remembered as {}", id);
    push(found->second);
  }
  // Two's complement, as many bytes as are needed.
  int64_t long_number() {
    const uint8_t count = r_.byte();
    if (count > sizeof(int64_t)) refuse("an integer of {} bytes, more than 8", count);
    uint64_t bits = 0;
    for (uint8_t i = 0; i < count; i++) bits |= uint64_t(r_.byte()) << (8 * i);
    const int unused = 64 - 8 * count;
    return count == 0 ? 0 : int64_t(bits << unused) >> unused;
  }

  void global(const std::string& name) {
    const auto* row = std::ranges::find(
        kGlobals, name, [](const GlobalRow& r) { return std::string_view(r.name); });
    if (row == std::end(kGlobals))
      refuse(
          "'{}' is refused: only dense tensors of real numbers, parameters, containers and plain "
          "values are read; save a state_dict() of such",
          shown(name));
    push_new(PickleKind::Global).number = row - std::begin(kGlobals);
  }
  const GlobalRow& row_of(const PickleValue& v) const { return kGlobals[v.number]; }

  int64_t whole(uint32_t i, const char* what) const {
    const PickleValue& v = value(i);
    if (v.kind != PickleKind::Int || v.number < 0) refuse("{} is no whole number", what);
    return v.number;
  }
  std::vector<int64_t> wholes(uint32_t i, const char* what) const {
    const PickleValue& v = value(i);
    if (v.kind != PickleKind::Tuple || v.items.size() > kMaxAxes)
      refuse("{} is no tuple of at most {} numbers", what, kMaxAxes);
    std::vector<int64_t> out;
    for (const uint32_t item : v.items) out.push_back(whole(item, what));
    return out;
  }

  // ("storage", a storage's class, key, device, number of elements)
  void persistent() {
    const PickleValue id = value(pop());
    const auto text = [&](size_t i) -> const std::string* {
      const PickleValue& v = value(id.items[i]);
      return v.kind == PickleKind::Text ? &v.text : nullptr;
    };
    if (id.kind != PickleKind::Tuple || id.items.size() != 5 || !text(0) || *text(0) != "storage" ||
        !text(2))
      refuse("a persistent id that is no storage");
    const PickleValue& type = value(id.items[1]);
    if (type.kind != PickleKind::Global || row_of(type).dtype == DType::Void ||
        row_of(type).call == Call::DType)
      refuse("a storage without type");
    if (text(2)->size() > kMaxNameBytes) refuse("a storage's key of {} bytes", text(2)->size());
    storages_.push_back({id.items[2], type.number, whole(id.items[4], "a storage's size")});
    push_new(PickleKind::Storage).number = int64_t(storages_.size()) - 1;
  }

  void reduce() {
    const PickleValue arguments = value(pop());
    const PickleValue& callable = value(pop());
    if (callable.kind != PickleKind::Global || arguments.kind != PickleKind::Tuple)
      refuse("a call of what is no function");
    const std::vector<uint32_t>& a = arguments.items;
    const GlobalRow& row = row_of(callable);
    switch (row.call) {
      case Call::OrderedDict:
        if (!a.empty()) refuse("{} with arguments", row.name);
        push_new(PickleKind::Dict);
        return;
      case Call::Parameter:
        if (a.size() != 3 || value(a[0]).kind != PickleKind::Tensor)
          refuse("{} without tensor", row.name);
        push(a[0]);
        return;
      case Call::Tensor:
      case Call::TensorOfBytes: rebuild(a, row); return;
      case Call::None:
      case Call::Bytes:
      case Call::DType: refuse("{} cannot be called", row.name);
    }
  }
  struct Storage {
    uint32_t key;  // a text among the values: a few bytes name it any number of times
    int64_t row, elements;
  };
  // What a tensor's elements are: of its storage, or of bytes its seventh argument.
  const GlobalRow& elements_of(const std::vector<uint32_t>& a, const GlobalRow& row,
                               const Storage& s) const {
    const GlobalRow& own = kGlobals[s.row];
    if (row.call == Call::Tensor) {
      if (own.call == Call::Bytes) refuse("{} of bytes without a dtype", row.name);
      return own;
    }
    const PickleValue& type = value(a[6]);
    if (own.call != Call::Bytes) refuse("{} of {}, not of bytes", row.name, own.name);
    if (type.kind != PickleKind::Global || row_of(type).call != Call::DType)
      refuse("{} without a dtype", row.name);
    if (s.elements % int64_t(size_bytes(row_of(type).dtype)))
      refuse("{} bytes are no whole number of {}", s.elements, row_of(type).name);
    return row_of(type);
  }
  // (storage, offset, size, strides, requires_grad, hooks[, dtype][, metadata])
  void rebuild(const std::vector<uint32_t>& a, const GlobalRow& row) {
    const size_t least = row.call == Call::Tensor ? 6 : 7;
    if ((a.size() != least && a.size() != least + 1) || value(a[0]).kind != PickleKind::Storage)
      refuse("{} without storage", row.name);
    const Storage& s = storages_[size_t(value(a[0]).number)];
    const GlobalRow& type = elements_of(a, row, s);
    PickleTensor t{.key = s.key, .dtype = type.dtype, .type = type.name};
    const bool bytes = row.call == Call::TensorOfBytes;
    t.storage_elements = bytes ? s.elements / int64_t(size_bytes(type.dtype)) : s.elements;
    t.offset = whole(a[1], "a tensor's offset");
    t.shape = wholes(a[2], "a tensor's shape");
    t.strides = wholes(a[3], "a tensor's strides");
    if (t.shape.size() != t.strides.size())
      refuse("{} strides for {} axes", t.strides.size(), t.shape.size());
    axes_ += t.shape.size();
    if (axes_ > kMaxPickleValues) refuse("tensors of more than {} axes in all", kMaxPickleValues);
    element_count(r_.source(), at_, t.shape);
    push_new(PickleKind::Tensor).number = int64_t(out_.tensors.size());
    out_.tensors.push_back(std::move(t));
  }
  // State of an OrderedDict: PyTorch leaves version numbers there, which nothing needs.
  void build() {
    pop();
    container(PickleKind::Dict, "a state that belongs to a dictionary");
  }

  ByteReader r_;
  uint64_t at_ = 0;  // of the opcode
  size_t axes_ = 0;  // of all tensors
  Pickle out_;
  std::vector<uint32_t> stack_;
  std::unordered_map<uint32_t, uint32_t> memo_;
  std::vector<Storage> storages_;
};

}  // namespace

Pickle read_pickle(const ByteSource& source) {
  if (source.size_bytes() > kMaxPickleBytes)
    fail_at(source, 0, "a pickle of {} bytes, more than {}", source.size_bytes(), kMaxPickleBytes);
  return Machine(source).run();
}

}  // namespace tuff::io
