#!/bin/sh
# A C compiler for TUFF_CC: that of the machine, for the level of x86-64 that TUFF_TEST_X86_64_LEVEL names. Of several
# -march the last one counts.
for cc in clang-19 clang clang-18 clang-17 clang-16 clang-15 clang-14; do
  command -v "$cc" > /dev/null && exec "$cc" "$@" "-march=x86-64-$TUFF_TEST_X86_64_LEVEL"
done
echo "no clang" >&2
exit 1
