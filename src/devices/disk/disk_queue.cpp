#include "devices/disk/disk_queue.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/log.h"
#include "base/os.h"

namespace tuff::devices {

using namespace hcq;

namespace {

constexpr uint64_t kSliceNs = 1'000'000'000;
constexpr size_t kKeptFailures = 64;

const DiskMemory* disk_memory(const Span& s) {
  return static_cast<const DiskMemory*>(s.block->file);
}

}  // namespace

void DiskMemory::read(size_t offset, std::span<std::byte> into) {
  const os::Transfer t = transfer(offset, into.data(), into.size(), false);
  os::transfers().run({&t, 1});
  require_unchanged();
}

void DiskMemory::write(size_t offset, std::span<const std::byte> from) {
  const os::Transfer t = transfer(offset, const_cast<std::byte*>(from.data()), from.size(), true);
  os::transfers().run({&t, 1});
}

struct DiskQueue::List final : EncodedList {
  explicit List(const CommandList& l) : list(l), times(l.timestamp_count) {}
  CommandList list;
  std::vector<uint64_t> times;
};

void DiskQueue::Batch::add(const CopyCmd& copy) {
  const DiskMemory *from = disk_memory(copy.src), *to = disk_memory(copy.dst);
  const size_t size = copy.dst.size_bytes;
  if (from && !to) {
    transfers.push_back(from->transfer(copy.src.offset, copy.dst.host(), size, false));
    read.push_back(from);
  } else if (to && !from) {
    transfers.push_back(to->transfer(copy.dst.offset, copy.src.host(), size, true));
  } else {
    copy_by_host(copy.dst, copy.src);
  }
}

void DiskQueue::Batch::run() {
  if (!transfers.empty()) os::transfers().run(transfers);
  for (const DiskMemory* m : read) m->require_unchanged();
  transfers.clear();
  read.clear();
}

std::unique_ptr<EncodedList> DiskQueue::encode(const CommandList& list, EncodeUse) {
  for (const Command& c : list.commands) {
    if (std::holds_alternative<DispatchCmd>(c.body))
      fail<Unsupported>("{}: runs no kernels", device().name());
    const auto* copy = std::get_if<CopyCmd>(&c.body);
    TUFF_CHECK(!copy || (copy->dst.host_reaches() && copy->src.host_reaches() &&
                         copy->dst.size_bytes == copy->src.size_bytes),
               "copy of {} bytes into {}", copy->src.size_bytes, copy->dst.size_bytes);
  }
  return std::make_unique<List>(list);
}

uint64_t DiskQueue::submit(EncodedList& list, std::span<const uint64_t> slots) {
  device().fail_if_lost();
  collect();
  std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
  waiting_.push_back({static_cast<List*>(&list), {slots.begin(), slots.end()}});
  const uint64_t value = submitted_.load(std::memory_order_relaxed) + 1;
  submitted_.store(value, std::memory_order_release);
  doorbell_.notify_one();
  return value;
}

std::vector<uint64_t> DiskQueue::timestamps(EncodedList& list) {
  return static_cast<List&>(list).times;
}

void DiskQueue::wait(uint64_t value) {
  while (!timeline_.wait(value, kSliceNs)) {}
  std::lock_guard lock(mutex_);
  const auto failed = failures_.find(value);
  if (failed == failures_.end()) return;
  const std::string reason = std::move(failed->second);
  failures_.erase(failed);
  throw IoError(reason);
}

void DiskQueue::stop() noexcept {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  doorbell_.notify_all();
  os::join_own(thread_, started_at_);
}

// `next` is the command that is reached.
void DiskQueue::run(List& list, const std::vector<uint64_t>& slots, size_t& next) {
  Batch batch;
  for (; next < list.list.commands.size(); next++) {
    const CommandBody& body = list.list.commands[next].body;
    if (const auto* copy = std::get_if<CopyCmd>(&body)) {
      batch.add(*copy);
      continue;
    }
    batch.run();
    if (const auto* w = std::get_if<WaitCmd>(&body))
      while (!w->signal->wait(slots[w->value_slot], kSliceNs)) {}
    if (const auto* s = std::get_if<SignalCmd>(&body)) s->signal->set(slots[s->value_slot]);
    if (const auto* t = std::get_if<TimestampCmd>(&body)) list.times[t->index] = os::monotonic_ns();
    if (const auto* h = std::get_if<HostCallCmd>(&body)) h->fn(h->context);
  }
  batch.run();
}

// If a list fails, its remaining signals are raised all the same: other queues wait for them.
void DiskQueue::run(Entry& entry, uint64_t value) {
  size_t next = 0;
  try {
    return run(*entry.list, entry.slots, next);
  } catch (const std::exception& e) {
    tell(entry.list->list, value, e.what());
  }
  for (; next < entry.list->list.commands.size(); next++) {
    const auto* s = std::get_if<SignalCmd>(&entry.list->list.commands[next].body);
    try {
      if (s) s->signal->set(entry.slots[s->value_slot]);
    } catch (const Error& e) {  // its device is lost: nothing waits there any more
      log_warn("{}: a signal is not raised: {}", device().name(), e.what());
    }
  }
}

void DiskQueue::tell(const CommandList& list, uint64_t value, const std::string& reason) {
  if (list.failed) return list.failed(reason);
  std::lock_guard lock(mutex_);
  failures_[value] = reason;
  if (failures_.size() > kKeptFailures) failures_.erase(failures_.begin());
}

void DiskQueue::serve() {
  for (uint64_t value = 1;; value++) {
    Entry entry;
    {
      std::unique_lock lock(mutex_);
      doorbell_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      entry = std::move(waiting_.front());
      waiting_.pop_front();
    }
    run(entry, value);
    timeline_.set(value);  // last: from here on the list belongs to its owner again
  }
}

}  // namespace tuff::devices
