#include "emu/nv/pci/table_mappings.h"

namespace tuff::emu::nv {

TableMappings::~TableMappings() {
  for (const auto& [address, run] : runs_) context_->unmap(address);
}

TableMappings::Runs TableMappings::walk() const {
  Runs runs;
  uint64_t begin = 0;
  for_each_page(memory_.mmu_version, memory_.read, true, root_,
                [&](uint64_t address, const Translation& page) {
                  if (!page.is_mapped()) return memory_.mistake("a page table: " + page.fault);
                  const auto last = runs.find(begin);
                  if (last != runs.end()) {
                    Run& r = last->second;
                    if (address == begin + r.size_bytes && r.video == page.video &&
                        r.writable == page.writable &&
                        page.physical == r.physical + r.size_bytes) {
                      r.size_bytes += page.page_bytes;
                      return;
                    }
                  }
                  begin = address;
                  runs[address] = {page.page_bytes, page.physical, page.video, page.writable};
                });
  return runs;
}

void TableMappings::map(uint64_t address, const Run& run) {
  std::byte* const at = memory_.at(run.video, run.physical, run.size_bytes);
  if (!at) return;
  auto buffer = std::make_shared<Buffer>();
  buffer->size_bytes = run.size_bytes;
  buffer->memory = at;
  context_->addresses.map({address, std::move(buffer), run.writable, true, false, 0});
}

void TableMappings::read_tables() {
  Runs now = walk();
  for (const auto& [address, run] : runs_) {
    const auto kept = now.find(address);
    if (kept == now.end() || kept->second != run) context_->unmap(address);
  }
  for (const auto& [address, run] : now) {
    const auto before = runs_.find(address);
    if (before == runs_.end() || before->second != run) map(address, run);
  }
  runs_ = std::move(now);
}

// The runs stay: what the tables say has not changed, only that it is a fault.
void TableMappings::forget_host(uint64_t address, uint64_t size_bytes) {
  for (const auto& [at, run] : runs_) {
    const bool meets = run.physical <= address ? address - run.physical < run.size_bytes
                                               : run.physical - address < size_bytes;
    if (!run.video && meets) context_->unmap(at);
  }
}

bool TableMappings::maps(uint64_t address, uint64_t size_bytes) const {
  const auto mapping = context_->addresses.find(address);
  return mapping && mapping->end() - address >= size_bytes;
}

}  // namespace tuff::emu::nv
