// Uses what is installed, as a user would: headers from the prefix, symbols from the libraries.
#include <tuff/dtype.h>
#include <tuff/error.h>

#include <cstdio>

int main() {
  const tuff::DType both = tuff::promote(tuff::parse_dtype("half"), tuff::parse_dtype("bfloat16"));
  try {
    tuff::parse_dtype("float7");
  } catch (const tuff::InvalidArgument&) {
    std::printf("%s %u\n", tuff::name(both), unsigned(tuff::f16_from_f64(1.5)));
    return 0;
  }
  return 1;
}
