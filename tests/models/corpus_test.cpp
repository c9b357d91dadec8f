#include "models/corpus.h"

#include <gmock/gmock.h>

#include "io/scratch_folder.h"
#include "tuff/error.h"

namespace tuff::models {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Corpus from(const std::string& text) { return Corpus({text.begin(), text.end()}, "test text"); }
Corpus load(std::vector<std::string> paths) { return load_corpus(paths); }
std::string whole(const Corpus& c) {
  return c.vocabulary().decode(c.train_tokens()) + c.vocabulary().decode(c.heldout_tokens());
}

TEST(Corpus, VocabularyIsSortedAndBytesAboveAsciiWork) {
  const Corpus corpus = from(
      "b\xc3\xa4"
      "a\xff"
      "b");
  EXPECT_THAT(corpus.vocabulary().bytes(), ElementsAre('a', 'b', 0xa4, 0xc3, 0xff));
  EXPECT_THAT(corpus.vocabulary().encode("a\xff"), ElementsAre(0, 4));
  EXPECT_EQ(whole(corpus),
            "b\xc3\xa4"
            "a\xff"
            "b");
}

TEST(Corpus, AllByteValuesFit) {
  std::string text;
  for (int i = 0; i < 256; ++i) text.push_back(static_cast<char>(255 - i));
  const Corpus corpus = from(text);
  EXPECT_EQ(corpus.vocabulary().size(), 256u);
  EXPECT_EQ(whole(corpus), text);
}

TEST(Corpus, HeldOutTenth) {
  for (size_t size : {1, 9, 10, 11, 99, 1000}) {
    const Corpus corpus = from(std::string(size, 'x'));
    EXPECT_EQ(corpus.train_tokens().size(), size * 9 / 10);
    EXPECT_EQ(corpus.train_tokens().size() + corpus.heldout_tokens().size(), size);
  }
}

TEST(Corpus, HashIsXxh64) { EXPECT_EQ(from("abc").hash_hex(), "44bc2cf5ad770999"); }

TEST(Corpus, SaysWhatIsWrong) {
  EXPECT_THAT(error_text<InvalidArgument>([] { from(""); }), HasSubstr("text is empty"));
  const Corpus corpus = from(std::string(650, 'x'));
  corpus.require_context(63);
  EXPECT_THAT(error_text<InvalidArgument>([&] { corpus.require_context(64); }),
              AllOf(HasSubstr("650 bytes"), HasSubstr("context 64"), HasSubstr("shorter has 65")));
  EXPECT_THAT(error_text<InvalidArgument>([&] { corpus.vocabulary().encode("xq"); }),
              AllOf(HasSubstr("'q'"), HasSubstr("byte 1")));
  const uint8_t token = 1;
  EXPECT_THAT(error_text<InvalidArgument>([&] { corpus.vocabulary().decode({&token, 1}); }),
              HasSubstr("token 1"));
}

TEST(LoadCorpus, FoldersInSortedOrder) {
  const ScratchFolder folder;
  folder.write("b.txt", std::string("2"));
  folder.write("a/z.txt", std::string("1"));
  folder.write("a/y.txt", std::string("0"));
  folder.write("c/d/e.txt", std::string("3"));
  folder.write(".git/config", std::string("hidden"));
  EXPECT_EQ(whole(load({folder.path()})), "0123");
  EXPECT_EQ(whole(load({folder.path("b.txt"), folder.path("a")})), "201");
}

TEST(LoadCorpus, SaysWhatIsWrong) {
  const ScratchFolder folder;
  EXPECT_THAT(error_text<IoError>([&] { load({folder.path("absent")}); }),
              AllOf(HasSubstr("absent"), HasSubstr("no such file")));
  EXPECT_THAT(error_text<InvalidArgument>([&] { load({folder.path()}); }), HasSubstr("empty"));
  EXPECT_THAT(error_text<IoError>([] { load({"/dev/zero"}); }),
              HasSubstr("neither a regular file"));
  EXPECT_THAT(error_text<InvalidArgument>([] { load({}); }), HasSubstr("no path given"));
}

TEST(LoadCorpus, RefusesLinksInACircle) {
  const ScratchFolder folder;
  folder.write("a/x.txt", std::string("text"));
  std::filesystem::create_directory_symlink(folder.path(), folder.path("a/loop"));
  EXPECT_THAT(error_text<IoError>([&] { load({folder.path()}); }), HasSubstr("a link back"));
}

TEST(LoadCorpus, RefusesMoreThanAGibibyteUnread) {
  const ScratchFolder folder;
  const std::string path = folder.write("big.txt", std::string("x"));
  std::filesystem::resize_file(path, kMaxCorpusBytes + 1);  // sparse: takes no space
  EXPECT_THAT(error_text<InvalidArgument>([&] { load({path}); }),
              AllOf(HasSubstr("big.txt"), HasSubstr("1073741825"), HasSubstr("1073741824")));
}

TEST(EmbeddedCorpus, PlainAsciiOfTheRightSize) {
  const Corpus corpus = embedded_corpus();
  EXPECT_GE(corpus.size_bytes(), 300'000u);
  EXPECT_LT(corpus.size_bytes(), 500'000u);
  for (uint8_t byte : corpus.vocabulary().bytes())
    EXPECT_TRUE(byte == '\n' || (byte >= 32 && byte < 127));
  corpus.require_context(64);
  const Corpus file = load({TUFF_SOURCE_DIR "/examples/data/corpus.txt"});
  EXPECT_EQ(corpus.hash_hex(), file.hash_hex());
}

}  // namespace
}  // namespace tuff::models
