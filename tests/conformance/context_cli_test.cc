// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// The program `moeyard context` on dumped contexts: what it shows, its exit codes and last lines.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "moeyard/schedule_setup.h"
#include "support/program.h"

namespace {

using moeyard::ScheduleContext;
using moeyard::test::Outcome;
using moeyard::test::run_moeyard;
using testing::HasSubstr;

class ContextCommand : public testing::Test {
 protected:
  ContextCommand() {
    EXPECT_EQ(aclrtSetDevice(0), 0);
    EXPECT_EQ(aclrtMalloc(&window_, kWindowBytes, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  }
  ~ContextCommand() override {
    aclrtFree(window_);
    std::filesystem::remove(path_);
  }
  Outcome show(const void* bytes, std::size_t count) const {
    std::ofstream(path_, std::ios::binary)
        .write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
    return run_moeyard({"context", path_.string()});
  }
  ScheduleContext ffn_worker() const {
    ScheduleContext context;
    EXPECT_EQ(moeyard::begin_ffn_worker(kShape, window_, kWindowBytes, window_, &context), "");
    return context;
  }
  ScheduleContext attention_worker() const {
    ScheduleContext context;
    EXPECT_EQ(moeyard::begin_attention_worker(kShape, window_, kWindowBytes, &context), "");
    return context;
  }

  static constexpr std::uint64_t kWindowBytes = 1 << 20;
  static constexpr moeyard::ScheduleShape kShape = {2, 2, 2, 3, 5, 512, 512};
  void* window_ = nullptr;
  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("context_" + std::to_string(getpid()));
};

TEST_F(ContextCommand, ShowsAnFfnWorker) {
  const ScheduleContext context = ffn_worker();
  const Outcome outcome = show(&context, sizeof context);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text,
              HasSubstr("    12  common.selected_expert_num                        3  slots of a token\n"));
  EXPECT_THAT(outcome.text,
              HasSubstr("FFN window: 128 bytes of descriptors, slots from 512 on, 12800 bytes in all\n"));
  EXPECT_THAT(outcome.text, HasSubstr("aclnnFfnWorkerBatching, needSchedule 1: accepts it\n"));
  EXPECT_EQ(outcome.last_line(), "PASS");
}

TEST_F(ContextCommand, ShowsAnAttentionWorker) {
  const ScheduleContext context = attention_worker();
  const Outcome outcome = show(&context, sizeof context);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text,
              HasSubstr("attention window: 48 bytes of flags, slots from 512 on, 6656 bytes in all\n"));
  EXPECT_THAT(outcome.text, HasSubstr("aclnnAttentionWorkerCombine, needSchedule 1: accepts it\n"));
}

TEST_F(ContextCommand, NamesWhatIsWrong) {
  ScheduleContext context = ffn_worker();
  context.ffn.polling_index = 7;
  context.control.run_flag = 0;
  const Outcome outcome = show(&context, sizeof context);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text,
              HasSubstr("aclnnInplaceFfnWorkerScheduler: ffn.polling_index is 7 but must be below "
                        "common.micro_batch_num, 2\n"));
  EXPECT_THAT(outcome.text, HasSubstr("aclnnFfnWorkerBatching, needSchedule 0: accepts it\n"));
  EXPECT_THAT(outcome.text, HasSubstr("control.run_flag is 0: schedulers return at once"));
  EXPECT_EQ(outcome.last_line(), "FAIL: 2 of 3 operators refuse this context");
}

TEST_F(ContextCommand, SurvivesAnyBytes) {
  std::vector<unsigned char> bytes(1024);
  std::uint32_t state = 7;
  for (int round = 0; round < 20; ++round) {
    for (unsigned char& byte : bytes)
      byte = static_cast<unsigned char>((state = state * 1664525 + 1013904223) >> 24);
    bytes[28] = static_cast<unsigned char>(round % 2), bytes[29] = bytes[30] = bytes[31] = 0;
    const Outcome outcome = show(bytes.data(), bytes.size());
    EXPECT_EQ(outcome.code, 1) << outcome.text;
    EXPECT_EQ(outcome.last_line().substr(0, 5), "FAIL:");
  }
}

TEST_F(ContextCommand, RefusesOtherFiles) {
  const ScheduleContext context = ffn_worker();
  Outcome outcome = show(&context, 1023);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.text,
              HasSubstr("has 1023 bytes but a context has 1024; copy exactly those from device memory"));
  outcome = run_moeyard({"context", "/no/such/file"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.text, HasSubstr("'/no/such/file' cannot be read"));
  EXPECT_EQ(run_moeyard({"context"}).code, 2);
}

}  // namespace
