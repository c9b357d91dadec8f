#include "emu/rdna/machine.h"

#include "base/check.h"

namespace tuff::emu::rdna {

uint8_t* Machine::reach(const Wave& w, uint32_t lane, uint64_t address, uint32_t bytes,
                        bool write) {
  Memory::Range& range = write ? writable_ : readable_;
  if (address < range.begin || address >= range.end || range.end - address < bytes) {
    range = memory_.find(address, write);
    if (!range.data || range.end - address < bytes) {
      range = {};
      report(w, FindingKind::UnmappedAccess, lane, address,
             fmt::format("{} bytes to {}", bytes, write ? "write" : "read"));
      stop();
      return nullptr;
    }
  }
  return range.data + (address - range.begin);
}

void Machine::report(const Wave& w, FindingKind kind, uint32_t lane, uint64_t data_address,
                     std::string detail) {
  const uint64_t at = code_address_ + (current ? current->address : 0);
  for (Finding& known : findings) {
    if (known.kind == kind && known.code_address == at) {
      ++known.times;
      return;
    }
  }
  findings.push_back({kind, kernel_, current ? current_text() : "", at, w.group->number, w.number,
                      lane, data_address, std::move(detail)});
}

std::string Machine::current_text() const {
  const Instruction& i = current->instruction;
  return i.row ? to_text(i) : fmt::format(".long {:#010x}", i.words[0]);
}

uint32_t Machine::step_at(uint64_t address) const {
  const uint64_t word = (address - code_address_) / 4;
  if (word >= step_of_word.size() || step_of_word[word] == ~0u) {
    fail<InvalidArgument>("{}: a jump to {:#x}, where no instruction starts", kernel_, address);
  }
  return step_of_word[word];
}

}  // namespace tuff::emu::rdna
