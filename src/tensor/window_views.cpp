// Channels as pixels and back: movement alone, and copies all the same, as PyTorch's.
#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::self;
using detail::text;

namespace {

// (..., C, H, W) as extents; the axes in front as they are.
struct Image {
  Sizes front;
  int64_t c, h, w;
  Image(const char* what, const Tensor& x, int64_t factor) {
    if (x.dim() < 3) fail<ShapeError>("{}: {} is not (..., C, H, W)", what, text(x.sizes()));
    if (factor < 1) fail<InvalidArgument>("{}: a factor of {}", what, factor);
    front = x.sizes();
    detail::require_numbers(what, Sizes(front.end() - 3, front.end()));
    c = front[front.size() - 3], h = front[front.size() - 2], w = front[front.size() - 1];
    front.resize(front.size() - 3);
  }
  Sizes with(std::initializer_list<Size> last) const {
    Sizes out = front;
    out.insert(out.end(), last.begin(), last.end());
    return out;
  }
  // The axes in front, and these of the others.
  Axes order(std::initializer_list<int64_t> last) const {
    Axes out;
    for (size_t i = 0; i < front.size(); i++) out.push_back(int64_t(i));
    for (const int64_t d : last) out.push_back(int64_t(front.size()) + d);
    return out;
  }
};

}  // namespace

Tensor TensorWindows::pixel_shuffle(int64_t r) const {
  const Tensor& x = self(this);
  const Image i("pixel_shuffle", x, r);
  if (i.c % (r * r))
    fail<ShapeError>("pixel_shuffle: {} channels are no multiple of {}", i.c, r * r);
  const Tensor parts = x.reshape(i.with({i.c / (r * r), r, r, i.h, i.w}));
  return detail::no_view(parts.permute(i.order({0, 3, 1, 4, 2}))
                             .reshape(i.with({i.c / (r * r), i.h * r, i.w * r})));
}

Tensor TensorWindows::pixel_unshuffle(int64_t r) const {
  const Tensor& x = self(this);
  const Image i("pixel_unshuffle", x, r);
  if (i.h % r || i.w % r)
    fail<ShapeError>("pixel_unshuffle: {}x{} is no multiple of {}", i.h, i.w, r);
  const Tensor parts = x.reshape(i.with({i.c, i.h / r, r, i.w / r, r}));
  return detail::no_view(parts.permute(i.order({0, 2, 4, 1, 3}))
                             .reshape(i.with({i.c * r * r, i.h / r, i.w / r})));
}

Tensor TensorWindows::channel_shuffle(int64_t groups) const {
  const Tensor& x = self(this);
  if (x.dim() < 2) fail<ShapeError>("channel_shuffle: {} has no channels", text(x.sizes()));
  detail::require_numbers("channel_shuffle", {x.size(1)});
  if (groups < 1 || x.size(1) % groups != 0)
    fail<InvalidArgument>("channel_shuffle: {} groups do not divide {} channels", groups,
                          x.size(1));
  const Tensor parts = detail::unflatten(x, 1, groups, x.size(1) / groups);
  return detail::no_view(parts.transpose(1, 2).flatten(1, 2));
}

}  // namespace tuff
