#include "ir/uop.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_set>

#include "ir/custom_kernel.h"
#include "ir/derive.h"
#include "ir/device_group.h"
#include "ir/gradient.h"

namespace tuff::ir {
namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdull;
  return h ^ (h >> 32);
}
uint64_t hash_text(const std::string& s) { return std::hash<std::string>()(s); }

// Two hashes of an arg: by identity of Storages and symbolic extents (interning), or by structure.
struct ArgHash {
  bool structural;
  uint64_t dim(const Dim& d) const {
    if (d.is_const()) return uint64_t(d.value());
    return structural ? d.uop()->key : std::bit_cast<uint64_t>(d.uop().get());
  }
  uint64_t operator()(std::monostate) const { return 0; }
  uint64_t operator()(int64_t v) const { return uint64_t(v); }
  uint64_t operator()(const Scalar& v) const { return mix(v.bits, uint64_t(v.dtype)); }
  uint64_t operator()(const IntVec& v) const {
    uint64_t h = v.size();
    for (int64_t i : v) h = mix(h, uint64_t(i));
    return h;
  }
  uint64_t operator()(const Shape& v) const {
    uint64_t h = v.size() + 100;
    for (const Dim& d : v) h = mix(h, dim(d));
    return h;
  }
  uint64_t operator()(const Pairs& v) const {
    uint64_t h = v.size() + 200;
    for (const DimPair& p : v) h = mix(mix(h, dim(p.a)), dim(p.b));
    return h;
  }
  uint64_t operator()(const ReduceArg& v) const { return mix((*this)(v.axes), uint64_t(v.op)); }
  uint64_t operator()(const ScatterArg& v) const {
    return mix(mix(uint64_t(v.op), uint64_t(v.axis)), uint64_t(v.named));
  }
  uint64_t operator()(const LoopArg& v) const {
    uint64_t h = mix(mix(dim(v.steps) * 2 + v.reverse, uint64_t(v.rows)), v.body->sequences);
    for (const auto* nodes : {&v.body->places, &v.body->next})
      for (const UOp& u : *nodes)
        h = mix(h, structural ? u->key : std::bit_cast<uint64_t>(u.get()));
    return h;
  }
  uint64_t operator()(const CustomKernelArg& v) const {
    uint64_t h = mix(content_hash(*v.kernel), uint64_t(v.number));
    for (uint32_t n : v.groups) h = mix(h, n);
    for (const CustomOutput& o : v.outputs) h = mix(mix(h, uint64_t(o.dtype)), (*this)(o.shape));
    return h;
  }
  uint64_t operator()(const Ref<History>& v) const {
    return structural ? 0 : std::bit_cast<uint64_t>(v.get());
  }
  uint64_t operator()(const GradientRule* v) const { return hash_text(v->name); }
  uint64_t operator()(const RangeArg& v) const { return mix(uint64_t(v.id), uint64_t(v.kind)); }
  uint64_t operator()(const VariableArg& v) const {
    return mix(mix(hash_text(v.name), uint64_t(v.min)), uint64_t(v.max));
  }
  uint64_t operator()(const ParamArg& v) const {
    return mix(mix(uint64_t(v.slot), uint64_t(v.count)), hash_text(v.device));
  }
  uint64_t operator()(const SpecialArg& v) const {
    return mix(uint64_t(v.space), uint64_t(v.axis));
  }
  uint64_t operator()(const SharedArg& v) const {
    return mix(uint64_t(v.number), uint64_t(v.count));
  }
  uint64_t operator()(const MatrixArg& v) const {
    const uint64_t extents = mix(uint64_t(v.rows), uint64_t(v.columns));
    const uint64_t form = uint64_t(v.use) * 2 + uint64_t(v.by_columns);
    const uint64_t lines = mix(uint64_t(v.stride), uint64_t(v.interleaved));
    return mix(mix(mix(extents, form), lines), uint64_t(v.number));
  }
  uint64_t operator()(const Placement& v) const {
    uint64_t h = uint64_t(v.shard_axis);
    for (const std::string& d : v.devices) h = mix(h, hash_text(d));
    return h;
  }
  uint64_t operator()(const Ref<Storage>& s) const {
    if (!structural) return s->id;
    return mix(mix(uint64_t(s->count), uint64_t(s->dtype)), hash_text(s->device));
  }
};

std::string group_of(std::span<const UOp> parts) {
  std::vector<std::string> devices;
  for (const UOp& p : parts) {
    TUFF_CHECK(p->device, "a part of shards is on no device");
    devices.push_back(*p->device);
  }
  return group_name(devices);
}

const std::string* intern_device(const std::string& s) {
  if (s.empty()) return nullptr;
  static std::mutex mutex;
  static std::set<std::string>& names = *std::make_unique<std::set<std::string>>().release();
  std::lock_guard lock(mutex);
  return &*names.insert(s).first;
}

// The parts of a node before it exists.
struct NodeView {
  Op op;
  DType dtype;
  std::span<const UOp> src;
  const Arg& arg;
  uint64_t hash;
};

struct NodeHash {
  using is_transparent = void;
  size_t operator()(const Node* n) const { return n->hash; }
  size_t operator()(const NodeView& v) const { return v.hash; }
};
struct NodeEqual {
  using is_transparent = void;
  bool operator()(const Node* a, const Node* b) const { return a == b; }
  bool operator()(const NodeView& v, const Node* n) const { return (*this)(n, v); }
  bool operator()(const Node* n, const NodeView& v) const {
    return n->hash == v.hash && n->op == v.op && n->dtype == v.dtype &&
           n->src_count == v.src.size() && std::equal(v.src.begin(), v.src.end(), n->src_begin) &&
           n->arg == v.arg;
  }
};

// The intern table in shards. A node's count falls to zero only under its shard's lock, and lookups
// raise it under the same lock: a node found can never be one that is being destroyed.
struct Shard {
  std::mutex mutex;
  std::unordered_set<const Node*, NodeHash, NodeEqual> nodes;
};
constexpr size_t kShards = 64;

struct InternTable {
  Shard shards[kShards];
  std::atomic<uint64_t> next_serial{1};
  std::atomic<uint64_t> live{0};
  Shard& of(uint64_t hash) { return shards[(hash >> 48) % kShards]; }
};
// Leaked on purpose: UOps in static objects may be released after main.
InternTable& table() {
  static InternTable& t = *std::make_unique<InternTable>().release();
  return t;
}

DType derive_dtype(Op op, DType given, std::span<const UOp> src) {
  switch (row(op).rule) {
    case DTypeRule::Same: return src[0]->dtype;
    case DTypeRule::Bool: return DType::Bool;
    // Index until `kernel` has chosen its width for the linear floor.
    case DTypeRule::Index: return given == DType::I32 || given == DType::I64 ? given : DType::Index;
    case DTypeRule::Void: return DType::Void;
    case DTypeRule::Where: return src[1]->dtype;
    case DTypeRule::Given: return given;
  }
  return given;
}

void check_dtypes(Op op, std::span<const UOp> src) {
  if (has_flag(op, kBinary) || op == Op::MulAdd || op == Op::Threefry) {
    for (const UOp& u : src.subspan(1)) {
      TUFF_CHECK(u->dtype == src[0]->dtype, "{}: dtypes differ: {} and {}", name(op),
                 name(src[0]->dtype), name(u->dtype));
    }
  }
  if (op == Op::Where) {
    TUFF_CHECK(src[0]->dtype == DType::Bool, "where: condition is {}", name(src[0]->dtype));
    TUFF_CHECK(src[1]->dtype == src[2]->dtype, "where: dtypes differ: {} and {}",
               name(src[1]->dtype), name(src[2]->dtype));
  }
}

const std::string* derive_device(Op op, std::span<const UOp> src, const Arg& arg) {
  if (op == Op::Shards) return intern_device(group_of(src));
  if (auto* s = std::get_if<Ref<Storage>>(&arg)) return intern_device((*s)->device);
  if (auto* p = std::get_if<ParamArg>(&arg)) return intern_device(p->device);
  if (auto* p = std::get_if<Placement>(&arg)) return intern_device(p->devices.at(0));
  for (const UOp& u : src) {
    if (u->device) return u->device;
  }
  return nullptr;
}

// Where the sources' paths to memory meet; null both if there are none and if they do not meet.
struct Junction {
  const Node* below = nullptr;
  bool here = false;
};
Junction derive_junction(const NodeView& v) {
  const bool names_memory =
      v.op == Op::Buffer || v.op == Op::Param || std::holds_alternative<Placement>(v.arg);
  if (names_memory) return {nullptr, true};
  const Node* below = nullptr;
  for (const UOp& u : v.src) {
    if (!u->junction || u->junction == below) continue;
    if (below) return {nullptr, true};
    below = u->junction;
  }
  return {below, false};
}

uint64_t structural_key(const NodeView& v) {
  uint64_t h = mix(uint64_t(v.op) + 1, uint64_t(v.dtype));
  for (const UOp& u : v.src) h = mix(h, u->key);
  return mix(h, std::visit(ArgHash{true}, v.arg) + v.arg.index());
}

const Node* build_node(const NodeView& v) {
  // All that may throw comes first: from the allocation on nothing is lost.
  Shape shape = derive_shape(v.op, v.src, v.arg);
  const auto [min, max] = derive_bounds(v.op, v.dtype, v.src, v.arg);
  const std::string* device = derive_device(v.op, v.src, v.arg);
  const uint64_t key = structural_key(v);
  const Junction junction = derive_junction(v);
  Arg arg = v.arg;
  void* memory = ::operator new(sizeof(Node) + v.src.size() * sizeof(UOp));
  UOp* src = reinterpret_cast<UOp*>(static_cast<char*>(memory) + sizeof(Node));
  std::uninitialized_copy(v.src.begin(), v.src.end(), src);
  InternTable& t = table();
  t.live.fetch_add(1, std::memory_order_relaxed);
  Node* n = static_cast<Node*>(memory);
  return new (memory) Node{.op = v.op,
                           .dtype = v.dtype,
                           .src_count = uint32_t(v.src.size()),
                           .refs = 1,
                           .mark_order = 0,
                           .mark = 0,
                           .src_begin = src,
                           .device = device,
                           .key = key,
                           .junction = junction.here ? n : junction.below,
                           .serial = t.next_serial.fetch_add(1, std::memory_order_relaxed),
                           .hash = v.hash,
                           .min = min,
                           .max = max,
                           .arg = std::move(arg),
                           .shape = std::move(shape)};
}

// Destroys a node taken out of the table, and what only it held, without recursion.
void release_node(const Node* first) {
  static thread_local std::vector<const Node*>* work = nullptr;
  if (work) {
    work->push_back(first);
    return;
  }
  std::vector<const Node*> list{first};
  work = &list;
  while (!list.empty()) {
    const Node* n = list.back();
    list.pop_back();
    for (UOp& u : std::span(const_cast<UOp*>(n->src_begin), n->src_count)) u = UOp();
    for (uint32_t i = 0; i < n->src_count; i++) n->src_begin[i].~UOp();
    n->~Node();
    ::operator delete(const_cast<Node*>(n));
    table().live.fetch_sub(1, std::memory_order_relaxed);
  }
  work = nullptr;
}

}  // namespace

UOp::UOp(const Node* n) : n_(n) {
  if (n_) n_->refs.fetch_add(1, std::memory_order_relaxed);
}

UOp::~UOp() {
  if (!n_) return;
  uint32_t refs = n_->refs.load(std::memory_order_relaxed);
  while (refs > 1) {
    if (n_->refs.compare_exchange_weak(refs, refs - 1, std::memory_order_acq_rel)) return;
  }
  {
    Shard& shard = table().of(n_->hash);
    std::lock_guard lock(shard.mutex);
    if (n_->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    shard.nodes.erase(n_);
  }
  release_node(n_);
}

UOp make(Op op, DType given, std::span<const UOp> src, Arg arg) {
  const OpRow& r = row(op);
  TUFF_CHECK(r.arity < 0 || size_t(r.arity) == src.size(), "{} takes {} sources, got {}", r.text,
             int(r.arity), src.size());
  for (const UOp& u : src) TUFF_CHECK(bool(u), "{}: empty source", r.text);
  check_dtypes(op, src);
  NodeView v{op, derive_dtype(op, given, src), src, arg, 0};
  uint64_t h = mix(uint64_t(op) + 1, uint64_t(v.dtype));
  for (const UOp& u : src) h = mix(h, std::bit_cast<uint64_t>(u.get()));
  v.hash = mix(h, std::visit(ArgHash{false}, arg) + arg.index());

  Shard& shard = table().of(v.hash);
  {
    std::lock_guard lock(shard.mutex);
    if (auto it = shard.nodes.find(v); it != shard.nodes.end()) return UOp(*it);
  }
  // Shapes and bounds may themselves intern nodes, so the node is built without the lock.
  const Node* n = build_node(v);
  const Node* other = nullptr;
  {
    std::lock_guard lock(shard.mutex);
    if (auto it = shard.nodes.find(v); it != shard.nodes.end()) {
      other = *it;
      other->refs.fetch_add(1, std::memory_order_relaxed);
    } else {
      shard.nodes.insert(n);
    }
  }
  if (other) release_node(n);
  return UOp::adopt(other ? other : n);
}

UOp with_src(const UOp& u, std::span<const UOp> src) {
  if (src.size() == u->src_count && std::equal(src.begin(), src.end(), u->src_begin)) return u;
  return make(u->op, u->dtype, src, u->arg);
}

uint64_t live_node_count() { return table().live.load(); }

const MatrixArg* matrix_of(const Node* n) {
  const auto passes_on = [](Op op) {
    return op == Op::After || op == Op::Load || op == Op::Reduce || op == Op::Cast ||
           op == Op::Mul || op == Op::MulAdd;
  };
  while (passes_on(n->op)) n = n->src(0).get();
  const bool matrix = n->op == Op::Register || n->op == Op::MatrixFill || n->op == Op::MatrixLoad ||
                      n->op == Op::MatrixMulAdd;
  return matrix ? std::get_if<MatrixArg>(&n->arg) : nullptr;
}

std::string device_of(const UOp& u) { return u->device ? *u->device : std::string(); }

namespace {
std::atomic<uint64_t> storages{0};
}  // namespace

uint64_t last_storage_id() { return storages.load(); }

Storage::Storage(std::string device_name, DType t, int64_t n)
    : id(storages.fetch_add(1) + 1), device(std::move(device_name)), dtype(t), count(n) {
  if (n > INT64_MAX / int64_t(std::max<size_t>(1, size_bytes(t))))
    fail<OutOfMemory>("{}: {} elements of {} are more than 2^63 bytes", device, n, name(t));
}

Arg::Arg(const Arg&) = default;
Arg::Arg(Arg&&) noexcept = default;
Arg& Arg::operator=(const Arg&) = default;
Arg& Arg::operator=(Arg&&) noexcept = default;
Arg::~Arg() = default;

Dim::Dim(UOp expr) {
  TUFF_CHECK(expr && expr->dtype == DType::Index, "an extent must be an Index expression");
  value_ = expr->max;
  if (!expr->is_const()) expr_ = std::move(expr);
}
UOp Dim::uop() const { return expr_ ? expr_ : index_const(value_); }

const char* name(AxisKind k) {
  static constexpr const char* kNames[] = {"loop",     "group",  "local",      "lane",
                                           "vector",   "reduce", "reducelane", "groupreduce",
                                           "subgroup", "matrix", "ordered"};
  return kNames[static_cast<size_t>(k)];
}

const char* name(Named n) {
  static constexpr const char* kNames[] = {"any", "once", "all", "unordered"};
  return kNames[static_cast<size_t>(n)];
}

const char* name(MatrixUse use) {
  return use == MatrixUse::A ? "a" : use == MatrixUse::B ? "b" : "sum";
}

}  // namespace tuff::ir
