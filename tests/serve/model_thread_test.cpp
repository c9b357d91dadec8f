// The thread that runs the model: answers side by side, cancelled, refused, in time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "language/fixtures.h"
#include "serve/model_thread.h"
#include "serve/request_error.h"

namespace tuff::serve {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Threads : public testing::Test {
 protected:
  static Prompt prompt(int64_t tokens) {
    return {{5, 9, 11}, {.tokens = tokens, .sampling = {.temperature = 0}}};
  }
  // The whole text, and how it ended.
  static std::pair<std::string, Outcome> read(Reply& reply, size_t choice = 0) {
    std::string text;
    const Outcome* outcome = nullptr;
    for (int i = 0; i < 600 && !outcome; i++) {
      reply.wait(100ms);
      text += reply.take(choice).text;
      outcome = reply.outcome(choice);
    }
    return {text, outcome ? *outcome : Outcome{.status = 0}};
  }
  static int status_of(const std::function<void()>& f) {
    try {
      f();
    } catch (const RequestError& e) {
      return e.status();
    }
    return 200;
  }
  const language::Model model_ = language::fixture_model("qwen2");
  Metrics metrics_;
  const ModelThreadOptions options_{.batch = {.sequences = 2}, .queue = 4};
};

TEST_F(Threads, AnswersAreThoseOfGenerate) {
  language::Sequence sequence(model_);
  const Prompt p = prompt(6);
  const std::string wanted = language::generate(sequence, p.tokens, p.options).text;
  ModelThread thread(model_, options_, metrics_);
  const ReplyHandle both = thread.submit({prompt(6), prompt(3)});
  EXPECT_EQ(read(*both, 0).first, wanted);
  const auto [text, outcome] = read(*both, 1);
  EXPECT_EQ(text, wanted.substr(0, text.size()));
  EXPECT_EQ(outcome.tokens, 3u);
  EXPECT_TRUE(thread.drain(1s));
  EXPECT_EQ(status_of([&] { thread.submit({prompt(1)}); }), 503) << "nothing more is taken";
}

TEST_F(Threads, MoreThanTheQueueHoldsIsRefused) {
  ModelThread thread(model_, options_, metrics_);
  EXPECT_EQ(status_of([&] { thread.submit(std::vector<Prompt>(7, prompt(1))); }), 429);
  EXPECT_EQ(status_of([&] { thread.submit(std::vector<Prompt>(6, prompt(1))); }), 200);
}

TEST_F(Threads, AHandlesEndCancels) {
  ModelThread thread(model_, options_, metrics_);
  for (int i = 0; i < 5; i++) thread.submit({prompt(-1)});
  EXPECT_TRUE(thread.drain(20s));
  EXPECT_THAT(metrics_.text(thread.stats()), Not(HasSubstr("cancelled_total 0\n")));
}

TEST_F(Threads, TheTimeLimitEndsAnswers) {
  ModelThread thread(model_, {.batch = {.sequences = 2}, .queue = 4, .time_limit = 0s}, metrics_);
  const Outcome outcome = read(*thread.submit({prompt(-1)})).second;
  EXPECT_EQ(outcome.status, 503);
  EXPECT_THAT(outcome.error, HasSubstr("longer than 0 s"));
}

TEST_F(Threads, WhatRunsEndsWithTheThread) {
  auto thread = std::make_unique<ModelThread>(model_, options_, metrics_);
  const ReplyHandle reply = thread->submit({prompt(-1), prompt(-1), prompt(-1), prompt(-1)});
  thread.reset();
  for (size_t i = 0; i < 4; i++) EXPECT_NE(read(*reply, i).second.status, 0) << i;
}

TEST_F(Threads, PromptsThatDoNotFitAreErrorsOfTheirs) {
  ModelThread thread(model_, options_, metrics_);
  const ReplyHandle reply = thread.submit({{std::vector<int32_t>(100, 1), {}}, prompt(2)});
  EXPECT_EQ(read(*reply, 0).second.status, 400);
  EXPECT_EQ(read(*reply, 1).second.status, 200);
}

TEST_F(Threads, RunsWorkBetweenCalls) {
  ModelThread thread(model_, options_, metrics_);
  size_t width = 0;
  thread.run([&](const language::Model& m) {
    width = language::embed(m, std::vector<int32_t>{1, 2}).size();
  });
  EXPECT_EQ(int64_t(width), model_.description().width);
  EXPECT_THROW(thread.run([](const language::Model&) { throw InvalidArgument("no"); }),
               InvalidArgument);
}

TEST_F(Threads, GetWarmBeforeTheFirstAnswer) {
  ModelThread thread(model_, options_, metrics_);
  const std::optional<WarmUp> warm = thread.wait_until_warm(60s);
  ASSERT_TRUE(warm);
  EXPECT_GT(warm->graphs, 2u);
  EXPECT_GT(warm->seconds, 0);
  ModelThread cold(model_, {.warm_up = false}, metrics_);
  EXPECT_EQ(cold.wait_until_warm(60s)->graphs, 0u);
}

TEST_F(Threads, AnEncoderEmbedsAndHasNoAnswers) {
  ModelThread thread(language::fixture_model("bert_mean"), options_, metrics_);
  EXPECT_EQ(thread.wait_until_warm(60s)->graphs, 3u) << "texts of 16, 32 and 64 tokens";
  EXPECT_EQ(thread.context(), 64);
  std::vector<float> vector;
  thread.run([&](const language::Model& m) {
    vector = language::embed(m, std::vector<int32_t>{1, 2});
  });
  EXPECT_EQ(int64_t(vector.size()), 32);
}

}  // namespace
}  // namespace tuff::serve
