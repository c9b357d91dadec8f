#include "text/grammar/json_objects.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tuff::text::grammar {
namespace {

constexpr size_t kMostTails = 1 << 17;

using Tail = std::optional<Expression>;  // none: nothing may follow

// Behind all that a schema names, of which `written` were.
Tail other_members(const ObjectShape& s, uint32_t written) {
  const uint32_t least = s.least > written ? s.least - written : 0;
  const uint32_t most = s.most == kUnbounded ? kUnbounded : s.most - written;
  if (least > most) return {};
  if (!s.others || most == 0) return least == 0 ? Tail(Expression()) : std::nullopt;
  if (written > 0) return repeated(sequence({s.comma, *s.others}), least, most);
  const uint32_t more = most == kUnbounded ? kUnbounded : most - 1;
  Expression some = sequence(
      {*s.others, repeated(sequence({s.comma, *s.others}), std::max(least, 1u) - 1, more)});
  return least == 0 ? optional(std::move(some)) : std::move(some);
}

}  // namespace

std::optional<Expression> object_inside(ObjectShape s, const AddRule& add) {
  // Beyond this many it makes no difference how many were written.
  const uint32_t count = std::max({s.least, s.most == kUnbounded ? 0 : s.most, 1u});
  if ((s.members.size() + 1) * size_t(std::min(count, uint32_t(s.members.size()) + 1)) > kMostTails)
    fail<InvalidArgument>("a JSON schema: an object of {} members and a bound of their number of "
                          "{} is too large",
                          s.members.size(), count);
  std::vector<Tail> tails;  // by how many were written before
  const auto before = [&](size_t member) { return std::min<size_t>(count, member); };
  for (uint32_t n = 0; n <= before(s.members.size()); n++) tails.push_back(other_members(s, n));
  for (size_t i = s.members.size(); i-- > 0;) {
    ObjectMember& m = s.members[i];
    std::vector<Tail> here;
    for (Tail& t : tails)
      if (t) t = rule(add("members", std::move(*t)));
    for (uint32_t n = 0; n <= before(i); n++) {
      std::vector<Expression> some;
      const Tail& with = tails[std::min<size_t>(n + 1, count)];
      if (n < s.most && with)
        some.push_back(n > 0 ? sequence({s.comma, m.written, *with})
                             : sequence({m.written, *with}));
      if (!m.required && tails[n]) some.push_back(*tails[n]);
      here.push_back(some.empty() ? Tail() : Tail(choice(std::move(some))));
    }
    tails = std::move(here);
  }
  return tails[0];
}

}  // namespace tuff::text::grammar
