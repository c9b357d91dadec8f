#include "emu/nv/context.h"

#include <algorithm>
#include <thread>

namespace tuff::emu::nv {

struct Context::Turn {
  explicit Turn(Context& c) : context(c) {
    context.visitors_.fetch_add(1);
    context.mutex_.lock();
  }
  ~Turn() {
    context.mutex_.unlock();
    context.visitors_.fetch_sub(1);
  }
  Context& context;
};

void Context::attach(const ChannelSetup& setup, std::function<void(const ChannelError&)> failed) {
  const Turn turn(*this);
  const auto end = [this, group = setup.group, failed = std::move(failed)](const ChannelError& e) {
    failed(e);
    stop_group(group);
  };
  channels_.push_back(std::make_unique<Channel>(world_, setup, end));
}

void Context::stop_group(uint32_t group) {
  std::erase(running_, group);
  for (const auto& c : channels_)
    if (c->setup().group == group) c->kill();
}

void Context::add_engine(uint32_t channel, uint32_t engine_class) {
  const Turn turn(*this);
  for (const auto& c : channels_)
    if (c->setup().id == channel) c->add_engine(engine_class);
}

void Context::detach(uint32_t channel) {
  const Turn turn(*this);
  std::erase_if(channels_, [&](const auto& c) { return c->setup().id == channel; });
}

void Context::schedule(uint32_t group, bool runs) {
  const Turn turn(*this);
  std::erase(running_, group);
  if (runs) return running_.push_back(group);
  for (const auto& c : channels_)
    if (c->setup().group == group) c->stand_still();
}

void Context::unmap(uint64_t address) {
  const Turn turn(*this);
  if (const auto mapping = addresses.find(address)) {
    world_.caches.begin(world_.now());
    world_.caches.forget(mapping->serial);
  }
  addresses.unmap(address);
}

void Context::ring() {
  const Turn turn(*this);
  for (const auto& c : channels_) c->ring();
}

bool Context::has(uint32_t token) {
  const Turn turn(*this);
  return std::ranges::any_of(channels_, [&](const auto& c) { return c->setup().token == token; });
}

std::string Context::blocked() {
  const Turn turn(*this);
  std::string text;
  for (const auto& c : channels_) {
    const std::string line = c->blocked();
    if (!line.empty()) text += (text.empty() ? "" : "; ") + line;
  }
  return text;
}

bool Context::step() {
  while (visitors_.load() != 0) std::this_thread::yield();
  std::lock_guard lock(mutex_);
  if (running_.empty()) return false;
  if (world_.serials_run_out() &&
      std::ranges::none_of(channels_, [](const auto& c) { return c->busy(); })) {
    world_.restart_serials();
    for (const auto& c : channels_) c->forget_order();
  }
  world_.caches.begin(world_.now());
  choices_.clear();
  for (const auto& c : channels_)
    if (std::ranges::find(running_, c->setup().group) != running_.end()) c->offer(choices_);
  while (!choices_.empty()) {
    const size_t k = world_.random.below(choices_.size());
    const Channel::Choice choice = choices_[k];
    choices_[k] = choices_.back();
    choices_.pop_back();
    if (choice.channel->perform(choice)) return true;
  }
  return false;
}

}  // namespace tuff::emu::nv
