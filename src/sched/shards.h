// Values on several devices, resolved: what each device computes, and what is copied between them,
// so that schedules know nothing of groups (ir/device_group.h). Called by tensor when a graph with
// a group is realized. The rules: docs/design/shards.md.
#pragma once

#include <string>
#include <vector>

#include "ir/uop.h"

namespace tuff::sched {

// One value: its parts on the devices of a group, or all of it on one (or no) device.
struct Laid {
  static constexpr int kCopies = -1;
  std::vector<ir::UOp> parts;  // of a group by device, else one
  std::string group;           // "": one device
  int axis = kCopies;          // that is cut in equal parts
};

// Resolves the nodes of a growing graph, each once.
class ShardResolver {
 public:
  // A root of the tensor floor whose gradients have been taken.
  Laid laid(const ir::UOp& root);
  // The same, its device, "" or a group's name, being `device`.
  Laid laid_on(const ir::UOp& root, const std::string& device);

 private:
  Laid resolve(const ir::Node& n);
  Laid of_one_device(const ir::Node& n);
  Laid gathered_copy(const ir::Node& n);
  Laid of_group(const ir::Node& n, const std::string& group);
  Laid each(const ir::Node& n, const std::string& group, int axis, size_t sources);
  Laid moved(const ir::Node& n, const Laid& x);
  Laid flipped(const ir::Node& n, const Laid& x);
  Laid shrunk(const ir::Node& n, const Laid& x);
  Laid reduced(const ir::Node& n, const Laid& x);
  Laid elementwise(const ir::Node& n, const std::string& group);
  Laid assigned(const ir::Node& n);
  Laid scattered(const ir::Node& n, const std::string& group);
  Laid looped(const ir::Node& n, const std::string& group);
  Laid placed(const ir::Node& n, const std::string& group);
  std::vector<ir::UOp> as(const ir::UOp& source, const std::string& group, int axis);
  ir::UOp number_on(const ir::UOp& u, const std::string& device);

  ir::UOpMap<Laid> known_;
};

// Whether a node of it lies on a group.
bool reads_group(const ir::UOp& root);

}  // namespace tuff::sched
