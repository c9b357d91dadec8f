// export_digits FOLDER: writes the digits that `tuff train digits` draws as MNIST's four files.
#include <cstdio>
#include <exception>

#include "io/idx_files.h"
#include "models/digits.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: export_digits FOLDER\n");
    return 2;
  }
  try {
    tuff::io::write_idx_folder(argv[1], tuff::models::draw_digits({}), false);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "export_digits: %s\n", error.what());
    return 1;
  }
  return 0;
}
