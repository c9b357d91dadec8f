#include "language/pages.h"

#include <algorithm>

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
  while (held.pages.size() < wanted) held.pages.push_back(take_idle());
  return true;
}

int32_t Pages::take_idle() {
  const int32_t next = idle_.front();
  forget(next);
  take(next);
  return next;
}

void Pages::forget(int32_t page) {
  Page& p = pages_[size_t(page)];
  if (std::exchange(p.named, false)) texts_.erase(p.text);
}

bool Pages::change(HeldPages& held, size_t first) {
  const auto from = held.pages.begin() + std::ptrdiff_t(first);
  const auto is_shared = [&](int32_t page) { return pages_[size_t(page)].users > 1; };
  if (size_t(std::count_if(from, held.pages.end(), is_shared)) > idle_.size()) return false;
  for (auto page = from; page != held.pages.end(); ++page) {
    if (is_shared(*page)) {
      give_back(*page);
      *page = take_idle();
    } else {
      forget(*page);
    }
  }
  held.named = std::min(held.named, first);
  held.changed = true;
  return true;
}

void Pages::shrink(HeldPages& held, size_t positions) {
  while (held.pages.size() > pages_for(positions)) {
    give_back(held.pages.back());
    held.pages.pop_back();
  }
}

void Pages::name(HeldPages& held, std::span<const int32_t> text) {
  if (held.changed) return;
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
  shrink(held, 0);
  held = {};
}

void Pages::give_back(int32_t page) {
  Page& p = pages_[size_t(page)];
  if (--p.users == 0) p.idle = idle_.insert(p.named ? idle_.end() : idle_.begin(), page);
}

}  // namespace tuff::language
