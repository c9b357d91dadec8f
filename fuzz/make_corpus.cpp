// Writes the seeds of the fuzz targets: make_corpus FOLDER, one folder in it per reader.
#include <filesystem>
#include <fstream>

#include "io/formats/onnx_files.h"
#include "io/formats/sample_files.h"

using namespace tuff::io;

namespace {

void write(const std::filesystem::path& folder, size_t number, const Bytes& bytes) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / ("seed-" + std::to_string(number)), std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
}

Bytes text(const std::string& t) { return {t.begin(), t.end()}; }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  size_t number = 0;
  for (const SampleFile& f : sample_files()) write(folder / f.format, number++, f.bytes);
  write(folder / "onnx", number++, small_onnx());
  write(folder / "onnx", number++, sample_onnx());
  write(folder / "shards", 0,
        text(R"({"metadata":{"total_size":3},"weight_map":{"a":"x","b":"y"}})"));
  const Bytes tensor = pickled_tensor("0", 8, 1, {2, 3}, {3, 1});
  write(folder / "pytorch", number++,
        BytesBuilder().text("\x80\x02").append(tensor).text(".").bytes);
  write(folder / "pytorch", number++,
        BytesBuilder()
            .text("\x80\x02}q\x01(X")
            .add(1u)
            .text("w")
            .append(tensor)
            .text("K\x02h\x01u.")
            .bytes);
  write(folder / "npy", number++,
        npy_file("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3L)}", Bytes(12), 2));
}
