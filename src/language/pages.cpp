#include "language/pages.h"

#include "base/check.h"

namespace tuff::language {

Pages::Pages(int64_t count, int64_t positions)
    : positions_(size_t(positions)), pages_(size_t(count)), texts_() {
  for (int32_t i = 0; i < int32_t(count); i++)
    pages_[size_t(i)].idle = idle_.insert(idle_.end(), i);
}

Pages::Text Pages::text_at(uint64_t before, std::span<const int32_t> text, size_t page) const {
  const auto tokens = text.subspan(page * positions_, positions_);
  return {before, {tokens.begin(), tokens.end()}};
}

void Pages::take(int32_t page) {
  Page& p = pages_[size_t(page)];
  if (p.users++ == 0) idle_.erase(p.idle);
}

size_t Pages::take_known(HeldPages& held, std::span<const int32_t> text) {
  TUFF_CHECK(held.pages.empty());
  // Logits are those of a call, so one token is read again at least.
  while ((held.named + 1) * positions_ < text.size()) {
    const auto found = texts_.find(text_at(held.text, text, held.named));
    if (found == texts_.end()) break;
    take(found->second.page);
    held.pages.push_back(found->second.page);
    held.text = found->second.number;
    held.named++;
  }
  return held.named * positions_;
}

bool Pages::grow(HeldPages& held, size_t positions) {
  const size_t wanted = pages_for(positions);
  if (wanted > held.pages.size() + idle_.size()) return false;
  while (held.pages.size() < wanted) {
    const int32_t next = idle_.front();
    Page& p = pages_[size_t(next)];
    if (std::exchange(p.named, false)) texts_.erase(p.text);
    take(next);
    held.pages.push_back(next);
  }
  return true;
}

void Pages::name(HeldPages& held, std::span<const int32_t> text) {
  while ((held.named + 1) * positions_ <= text.size()) {
    const int32_t page = held.pages[held.named];
    const auto [at, is_new] =
        texts_.try_emplace(text_at(held.text, text, held.named), Known{page, last_ + 1});
    if (is_new) {
      last_++;
      pages_[size_t(page)].text = at;
      pages_[size_t(page)].named = true;
    }
    held.text = at->second.number;
    held.named++;
  }
}

// The last ones are the first to be used again: what others begin with stays longer.
void Pages::release(HeldPages& held) {
  for (auto page = held.pages.rbegin(); page != held.pages.rend(); ++page) {
    Page& p = pages_[size_t(*page)];
    if (--p.users == 0) p.idle = idle_.insert(p.named ? idle_.end() : idle_.begin(), *page);
  }
  held = {};
}

}  // namespace tuff::language
