#include "emu/memory/caches.h"

#include <bit>
#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "base/check.h"

namespace tuff::emu {
namespace {

constexpr uint32_t kLineBytes = 64, kLineShift = 6, kWordsPerLine = 16;

constexpr uint64_t bits(uint32_t begin, uint32_t end) {  // [begin, end) of 64
  return (end - begin == 64 ? ~0ull : (1ull << (end - begin)) - 1) << begin;
}

uint16_t changed_words(const uint8_t* a, const uint8_t* b) {
  uint16_t out = 0;
  for (uint32_t w = 0; w < kWordsPerLine; ++w) {
    if (std::memcmp(a + w * 4, b + w * 4, 4) != 0) out |= uint16_t(1u << w);
  }
  return out;
}

void copy_bytes(uint8_t* to, const uint8_t* from, uint64_t mask) {
  if (mask == ~0ull) {
    std::memcpy(to, from, kLineBytes);
    return;
  }
  for (; mask; mask &= mask - 1) {
    const int at = std::countr_zero(mask);
    to[at] = from[at];
  }
}

uint8_t* at(std::byte* memory) { return reinterpret_cast<uint8_t*>(memory); }

}  // namespace

// Bytes [begin, end) of one line.
struct Caches::LineRange {
  uint32_t line, begin, end;
  uint64_t bytes() const { return bits(begin, end); }
  uint16_t words() const { return uint16_t(bits(begin / 4, (end + 3) / 4)); }
  uint16_t whole_words() const {
    const uint32_t first = (begin + 3) / 4, behind = end / 4;
    return first < behind ? uint16_t(bits(first, behind)) : uint16_t(0);
  }
  // Calls f(index of the word in the mapping, which of its bytes).
  template <class F>
  void each_word(F f) const {
    for (uint32_t word = begin / 4; word <= (end - 1) / 4; ++word) {
      uint32_t bytes = 0xF;
      if (word == begin / 4) bytes &= 0xFu << (begin & 3);
      if (word == (end - 1) / 4) bytes &= 0xFu >> (3 - ((end - 1) & 3));
      f(line * kWordsPerLine + word, bytes);
    }
  }
  // Calls f(LineRange) for bytes [begin, end) of a mapping.
  template <class F>
  static void each(uint64_t begin, uint64_t end, F f) {
    for (uint64_t line = begin >> kLineShift; line <= (end - 1) >> kLineShift; ++line) {
      const uint64_t first = std::max(begin, line << kLineShift),
                     last = std::min(end, (line + 1) << kLineShift);
      f(LineRange{uint32_t(line), uint32_t(first & 63), uint32_t(last - (line << kLineShift))});
    }
  }
};

Caches::Caches(uint32_t gpu, AddressSpace& space)
    : gpu_(gpu), space_(space), poison_(kPageBytes, 0xDB) {}

Caches::~Caches() { drop(); }

void Caches::begin(uint32_t now) {
  now_ = now;
  const uint64_t generation = space_.generation();
  if (generation == generation_) return;
  generation_ = generation;
  translations_.fill({});
}

// ---- mappings

Caches::Shadow* Caches::make_shadow(std::shared_ptr<const Mapping> mapping) {
  auto s = std::make_unique<Shadow>();
  const size_t lines = mapping->buffer->size_bytes / kLineBytes;
  TUFF_CHECK(mapping->buffer->size_bytes % kPageBytes == 0 && mapping->address % kPageBytes == 0,
             "a mapping of {} bytes at {:#x}", mapping->buffer->size_bytes, mapping->address);
  const size_t line_bytes = lines * kLineBytes;
  s->reserved_bytes = lines * (kLineBytes + sizeof(Line) + kWordsPerLine * sizeof(Tag));
  // Pages appear where they are touched: a mapping may be larger than what is ever used of it.
  void* memory = ::mmap(nullptr, s->reserved_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    fail<OutOfMemory>("emulated GPU {}: no memory to shadow a mapping of {} bytes", gpu_,
                      mapping->buffer->size_bytes);
  }
  s->bytes = static_cast<uint8_t*>(memory);
  s->lines = reinterpret_cast<Line*>(s->bytes + line_bytes);
  s->tags = reinterpret_cast<Tag*>(s->lines + lines);
  const Buffer& b = *mapping->buffer;
  s->home = at(b.home == Buffer::Home::Vram && b.bar ? b.bar : b.memory);
  s->mapping = std::move(mapping);
  return (shadows_[s->mapping->serial] = std::move(s)).get();
}

void Caches::release(Shadow& s) { ::munmap(s.bytes, s.reserved_bytes); }

Caches::Shadow* Caches::shadow_of(uint64_t address) {
  const uint64_t page = address / kPageBytes;
  Translation& t = translations_[page % translations_.size()];
  if (t.page == page && address >= t.shadow->mapping->address &&
      address < t.shadow->mapping->end()) {
    return t.shadow;
  }
  std::shared_ptr<const Mapping> mapping = space_.find(address);
  if (!mapping) return nullptr;
  const auto known = shadows_.find(mapping->serial);
  Shadow* s = known != shadows_.end() ? known->second.get() : make_shadow(std::move(mapping));
  t = {page, s};
  return s;
}

// Sets fault_ where it returns null.
Caches::Shadow* Caches::reachable(uint64_t address, uint32_t bytes, bool write, bool execute) {
  Shadow* s = shadow_of(address);
  const bool whole = s && bytes <= s->mapping->end() - address;
  if (whole && (!write || s->mapping->writable) && (!execute || s->mapping->executable)) return s;
  fault_ = {s && !whole ? s->mapping->end() : address, write, execute, !whole};
  return nullptr;
}

bool Caches::mapped(uint64_t address, uint64_t bytes, bool write) {
  for (uint64_t at = address; at < address + bytes;) {
    const Shadow* s = reachable(at, 1, write, false);
    if (!s) return false;
    at = s->mapping->end();
  }
  return true;
}

void Caches::forget(uint64_t mapping_serial) {
  const auto found = shadows_.find(mapping_serial);
  if (found == shadows_.end()) return;
  Shadow* s = found->second.get();
  std::erase_if(dirty_, [&](const auto& entry) {
    if (entry.first == s) write_back(*s, entry.second);
    return entry.first == s;
  });
  release(*s);
  shadows_.erase(found);
  translations_.fill({});
}

void Caches::clear() {
  write_back();
  drop();
}

void Caches::drop() {
  for (auto& [serial, shadow] : shadows_) release(*shadow);
  shadows_.clear();
  dirty_.clear();
  translations_.fill({});
  epoch_ = 1;
}

// ---- the L2

// Bytes that are not dirty, as memory has them now.
void Caches::fetch(Shadow& s, uint32_t index) {
  Line& line = s.lines[index];
  const Buffer& b = *s.mapping->buffer;
  const size_t offset = size_t(index) * kLineBytes;
  const uint8_t* from = at(b.memory) + offset;
  if (b.home == Buffer::Home::Vram && b.bar && b.bar != b.memory) {
    if (b.gpu != gpu_) {
      from = at(b.bar) + offset;  // another GPU comes through the bar, as the host does
    } else if (line.hdp != hdp_epoch_) {
      // What GPUs store is in both. So where the two differ the host has written.
      std::memcpy(at(b.memory) + offset, at(b.bar) + offset, kLineBytes);
      line.hdp = hdp_epoch_;
    }
  }
  uint8_t fresh[kLineBytes];
  std::memcpy(fresh, from, kLineBytes);
  uint8_t* bytes = s.bytes + offset;
  copy_bytes(fresh, bytes, line.dirty);
  if (line.epoch && std::memcmp(fresh, bytes, kLineBytes) != 0) {
    for (uint16_t& changed : line.changed) changed |= changed_words(fresh, bytes);
  }
  std::memcpy(bytes, fresh, kLineBytes);
  line.epoch = epoch_;
}

void Caches::write_back(Shadow& s, uint32_t index) {
  Line& line = s.lines[index];
  const Buffer& b = *s.mapping->buffer;
  const size_t offset = size_t(index) * kLineBytes;
  copy_bytes(at(b.memory) + offset, s.bytes + offset, line.dirty);
  if (b.bar && b.bar != b.memory) copy_bytes(at(b.bar) + offset, s.bytes + offset, line.dirty);
  line.dirty = 0;
}

void Caches::write_back() {
  for (const auto& [shadow, line] : dirty_) write_back(*shadow, line);
  dirty_.clear();
}

size_t Caches::invalidate() {
  ++epoch_;
  const size_t dropped = dirty_.size();
  for (const auto& [shadow, line] : dirty_) shadow->lines[line].dirty = 0;
  dirty_.clear();
  return dropped;
}

// ---- uncached memory

// What others have changed since it was last looked at, in the accessed words or in all of them.
void Caches::observe(Shadow& s, const LineRange& range, bool whole) {
  Line& line = s.lines[range.line];
  const size_t offset = size_t(range.line) * kLineBytes;
  const uint16_t words = whole ? uint16_t(~0) : range.words();
  for (uint16_t left = words; left; left &= uint16_t(left - 1)) {
    const int w = std::countr_zero(left);
    uint8_t* known = s.bytes + offset + w * 4;
    uint32_t value;
    std::memcpy(&value, s.home + offset + w * 4, sizeof value);
    if (line.seen >> w & 1 && std::memcmp(known, &value, sizeof value) != 0) {
      for (uint16_t& changed : line.changed) changed |= uint16_t(1u << w);
    }
    std::memcpy(known, &value, sizeof value);
  }
  line.seen |= words;
}

// ---- an access

void Caches::touch(Shadow& s, const LineRange& range, const Accessor& who, const Request& request,
                   Conflict& conflict) {
  Line& line = s.lines[range.line];
  const bool scalar = request.path == Path::Scalar;
  const bool front = scalar || request.path == Path::Vector;
  uint32_t& fetched = line.fetched[scalar];
  const bool fetches = fetched == 0 || (scalar ? who.scalar : who.vector).time > fetched;
  if (s.mapping->cached) {
    if (request.read && line.epoch != epoch_) fetch(s, range.line);
    if (request.write) {
      if (!line.dirty) dirty_.emplace_back(&s, range.line);
      line.dirty |= range.bytes();
    }
  } else if (request.write) {
    line.seen &= uint16_t(~range.words());
  } else if (front) {
    observe(s, range, fetches);
  }
  if (!front || request.write) return;
  if (fetches) {
    fetched = now_;
    line.changed[scalar] = 0;
  } else if (line.changed[scalar] & range.words()) [[unlikely]] {
    conflict.kind = Conflict::Kind::Changed;
  }
}

void Caches::tag_read(Tag& tag, uint32_t bytes, const Accessor& who, const Order& visible,
                      Conflict& conflict) {
  const OpId writer = tag.writer >> 4, reader = tag.reader >> 4;
  if (writer != who.op && !visible.knows(writer) && (tag.writer & bytes)) [[unlikely]] {
    conflict.kind = who.ended.knows(writer) ? Conflict::Kind::Unseen : Conflict::Kind::Concurrent;
    conflict.other = writer;
    conflict.other_writes = true;
  }
  if (reader == who.op) {
    tag.reader |= bytes;
    return;
  }
  if (!who.ended.knows(reader)) tag.other_reader = tag.reader;
  tag.reader = who.op << 4 | bytes;
}

namespace {

// Whether nothing orders a write of some bytes of a word and what `other` did there.
bool unordered(uint32_t other, uint32_t bytes, const Accessor& who) {
  return other >> 4 != who.op && !who.ended.knows(other >> 4) && (other & bytes);
}

}  // namespace

const Order& visible_to(const Accessor& who, Path path) {
  switch (path) {
    case Path::Vector: return who.vector.seen;
    case Path::Scalar: return who.scalar.seen;
    case Path::Code: return who.code.seen;
    case Path::L2: break;
  }
  return who.ended;
}

void Caches::tag_write(Tag& tag, uint32_t bytes, const Accessor& who, Conflict& conflict) {
  for (const uint32_t other : {tag.reader, tag.other_reader, tag.writer}) {
    if (!unordered(other, bytes, who)) continue;
    conflict.kind = Conflict::Kind::Concurrent;
    conflict.other = other >> 4;
    conflict.other_writes = other == tag.writer;
  }
  tag.writer = tag.writer >> 4 == who.op ? tag.writer | bytes : who.op << 4 | bytes;
}

void Caches::tag_reads(Shadow& s, const LineRange& range, const Accessor& who, Path path,
                       Conflict& conflict) {
  Line& line = s.lines[range.line];
  const uint32_t me = who.op << 4 | uint32_t(path);
  if (line.last_reader != me) {
    line.last_reader = me;
    line.clean_reads = 0;
  } else if (!(range.words() & ~line.clean_reads)) {
    return;
  }
  if (line.last_writer != who.op << 4) line.last_writer = 0;
  const Order& visible = visible_to(who, path);
  range.each_word([&](uint32_t word, uint32_t bytes) {
    tag_read(s.tags[word], bytes, who, visible, conflict);
  });
  if (conflict.kind == Conflict::Kind::None) line.clean_reads |= range.whole_words();
}

void Caches::tag_writes(Shadow& s, const LineRange& range, const Accessor& who,
                        Conflict& conflict) {
  Line& line = s.lines[range.line];
  const uint32_t me = who.op << 4;
  if (line.last_writer != me) {
    line.last_writer = me;
    line.clean_writes = 0;
  } else if (!(range.words() & ~line.clean_writes)) {
    return;
  }
  if (line.last_reader >> 4 != who.op) line.last_reader = 0;
  range.each_word(
      [&](uint32_t word, uint32_t bytes) { tag_write(s.tags[word], bytes, who, conflict); });
  if (conflict.kind == Conflict::Kind::None) line.clean_writes |= range.whole_words();
}

bool Caches::may_write(const Shadow& s, const LineRange& range, const Accessor& who) {
  const Line& line = s.lines[range.line];
  if (line.last_writer == who.op << 4 && !(range.words() & ~line.clean_writes)) return true;
  bool found = false;
  range.each_word([&](uint32_t word, uint32_t bytes) {
    const Tag& tag = s.tags[word];
    for (const uint32_t other : {tag.reader, tag.other_reader, tag.writer}) {
      found |= unordered(other, bytes, who);
    }
  });
  return !found;
}

uint8_t* Caches::access(Shadow& s, const Accessor& who, const Request& request,
                        Conflict& conflict) {
  const uint64_t begin = request.address - s.mapping->address, end = begin + request.bytes;
  LineRange::each(begin, end, [&](const LineRange& range) {
    touch(s, range, who, request, conflict);
    if (request.read) tag_reads(s, range, who, request.path, conflict);
    if (request.write) tag_writes(s, range, who, conflict);
  });
  return (s.mapping->cached ? s.bytes : s.home) + begin;
}

uint8_t* Caches::reach(const Accessor& who, const Request& request, Conflict& conflict) {
  Shadow* s = reachable(request.address, request.bytes, request.write, request.path == Path::Code);
  if (!s) return nullptr;
  uint8_t* bytes = access(*s, who, request, conflict);
  if (conflict.kind != Conflict::Kind::None) [[unlikely]] {
    conflict.address = request.address;
    if (conflict.kind != Conflict::Kind::Concurrent && !request.write) return poison_.data();
  }
  return bytes;
}

uint8_t* Caches::reach_if_clean(const Accessor& who, const Request& request) {
  TUFF_CHECK(request.read != request.write, "a request of {} bytes that reads and writes",
             request.bytes);
  Shadow* s = reachable(request.address, request.bytes, request.write, request.path == Path::Code);
  if (!s) return nullptr;
  // A read leaves what it conflicts with in place, a write takes it over.
  bool clean = true;
  if (request.write) {
    const uint64_t begin = request.address - s->mapping->address;
    LineRange::each(begin, begin + request.bytes,
                    [&](const LineRange& range) { clean &= may_write(*s, range, who); });
  }
  if (!clean) return nullptr;
  Conflict conflict;
  uint8_t* bytes = access(*s, who, request, conflict);
  return conflict.kind == Conflict::Kind::None ? bytes : nullptr;
}

const uint8_t* Caches::peek(uint64_t address, uint32_t bytes) {
  Shadow* s = reachable(address, bytes, false, false);
  if (!s) return nullptr;
  const uint64_t begin = address - s->mapping->address;
  if (!s->mapping->cached) return s->home + begin;
  for (uint64_t line = begin >> kLineShift; line <= (begin + bytes - 1) >> kLineShift; ++line) {
    if (s->lines[line].epoch != epoch_) fetch(*s, uint32_t(line));
  }
  return s->bytes + begin;
}

bool Caches::store(uint64_t address, uint64_t value, uint32_t bytes) {
  Shadow* s = reachable(address, bytes, true, false);
  if (!s) return false;
  const uint64_t offset = address - s->mapping->address;
  const Buffer& b = *s->mapping->buffer;
  s->lines[offset >> kLineShift].seen = 0;
  for (std::byte* memory : {b.memory, b.bar}) {
    if (!memory) continue;
    // The host polls it: with the value it may see all that was written before.
    if (bytes == 4) {
      std::atomic_ref(*reinterpret_cast<uint32_t*>(memory + offset)).store(uint32_t(value));
    } else {
      std::atomic_ref(*reinterpret_cast<uint64_t*>(memory + offset)).store(value);
    }
  }
  return true;
}

}  // namespace tuff::emu
