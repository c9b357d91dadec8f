// fork() after devices were used: the child computes on where it can, and says at once where it
// cannot; it ends at once in any case, and the parent notices nothing.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include <tuff/tensor.h>

#include "base/check.h"
#include "base/os.h"
#include "engine/device.h"
#include "tensor/devices.h"

namespace tuff::engine {
namespace {

constexpr uint64_t kPatienceNs = 10'000'000'000;  // a third of what no progress takes to be noticed

struct Child {
  std::string said;
  bool ended = false;
};

// What `said` gives in a child of fork(), which then ends as a program does.
Child in_child(const std::function<std::string()>& said) {
  int ends[2] = {};
  EXPECT_EQ(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    std::string text;
    try {
      text = said();
    } catch (const std::exception& e) {
      text = e.what();
    }
    if (write(ends[1], text.data(), text.size()) < 0) _exit(1);
    std::exit(0);
  }
  close(ends[1]);
  Child child;
  const uint64_t begin = os::monotonic_ns();
  int status = 0;
  while (!child.ended && os::monotonic_ns() - begin < kPatienceNs) {
    child.ended = waitpid(pid, &status, WNOHANG) == pid;
    usleep(1000);
  }
  if (!child.ended) {
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
  }
  char buffer[1024];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    child.said.append(buffer, size_t(n));
  close(ends[0]);
  return child;
}

class Fork : public testing::TestWithParam<std::string> {
 protected:
  TensorOptions on() const { return {.device = GetParam()}; }
};

TEST_P(Fork, ChildrenComputeOrSayWhyNot) {
  const Tensor x = Tensor::arange(0, 100000, 1, on()).cast(DType::F32).realize();
  EXPECT_EQ((x * 3).sum({0}).item(), (x * 3).sum({0}).item());
  const auto doubled = [&] { return fmt::format("{}", (x * 2).to_vector<float>()[7]); };
  const auto fresh = [&] {
    return fmt::format("{}", Tensor::full({4}, 14, on()).sum().item() / 4);
  };
  const auto read = [&] { return fmt::format("{}", x.to_vector<float>()[14]); };
  for (const std::function<std::string()>& f :
       {std::function<std::string()>(doubled), std::function<std::string()>(fresh),
        std::function<std::string()>(read)}) {
    const Child child = in_child(f);
    EXPECT_TRUE(child.ended) << child.said;
    if (GetParam() == "CPU")
      EXPECT_EQ(child.said, "14");
    else
      EXPECT_NE(child.said.find("before fork()"), std::string::npos) << child.said;
  }
  EXPECT_EQ((x * 2).to_vector<float>()[7], 14);
}

// What threads share in the parent is one thread's in the child, and in its child.
TEST_P(Fork, LargeKernelsRunInChildrenAndTheirs) {
  if (GetParam() != "CPU") GTEST_SKIP() << "no driver's device survives fork()";
  const auto product = [&] {
    const Tensor x = Tensor::ones({300, 300}, on());
    return fmt::format("{}", x.matmul(x).sum().item());
  };
  const std::string expected = product();
  EXPECT_EQ(in_child([&] { return product() + in_child(product).said; }).said, expected + expected);
  EXPECT_EQ(product(), expected);
}

INSTANTIATE_TEST_SUITE_P(Devices, Fork, testing::ValuesIn(test::devices()),
                         test::named_by_device<testing::TestParamInfo<std::string>>);

}  // namespace
}  // namespace tuff::engine
