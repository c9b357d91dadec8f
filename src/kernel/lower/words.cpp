#include "kernel/lower/words.h"

namespace tuff::kernel {

using namespace ir;

UOp multiply_high(const UOp& a, const UOp& b) {
  const UOp low = word(0xffff);
  const UOp al = word_and(a, low), ah = shr(a, 16), bl = word_and(b, low), bh = shr(b, 16);
  const UOp mid = ah * bl + shr(al * bl, 16);
  const UOp mid2 = al * bh + word_and(mid, low);
  return ah * bh + shr(mid, 16) + shr(mid2, 16);
}

}  // namespace tuff::kernel
