// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "model/errors.h"
#include "moeyard/command.h"
#include "moeyard/schedule_context.h"

namespace moeyard::tool {
namespace {

using model::Ending;

struct Field {
  std::size_t offset;
  int bytes;
  const char* name;
  const char* meaning;
};
#define MOEYARD_FIELD(name, meaning) \
  { offsetof(ScheduleContext, name), static_cast<int>(sizeof(ScheduleContext::name)), #name, meaning }
constexpr Field kFields[] = {
    MOEYARD_FIELD(common.session_num, "attention workers, A"),
    MOEYARD_FIELD(common.micro_batch_num, "micro-batches of a session, M"),
    MOEYARD_FIELD(common.micro_batch_size, "tokens of a micro-batch, BS"),
    MOEYARD_FIELD(common.selected_expert_num, "slots of a token"),
    MOEYARD_FIELD(common.expert_num, "experts of a layer"),
    MOEYARD_FIELD(common.attn_to_ffn_token_size, "bytes from slot to slot, FFN window"),
    MOEYARD_FIELD(common.ffn_to_attn_token_size, "bytes from slot to slot, attention window"),
    MOEYARD_FIELD(common.schedule_mode, "0 FFN worker, 1 attention worker"),
    MOEYARD_FIELD(control.run_flag, "1 running, 0 stopped"),
    MOEYARD_FIELD(attention.token_info_buf, "flags of the results"),
    MOEYARD_FIELD(attention.token_info_buf_size, "bytes"),
    MOEYARD_FIELD(attention.token_data_buf, "slots of the results"),
    MOEYARD_FIELD(attention.token_data_buf_size, "bytes"),
    MOEYARD_FIELD(attention.micro_batch_id, "last micro-batch completed"),
    MOEYARD_FIELD(ffn.token_info_buf, "descriptors"),
    MOEYARD_FIELD(ffn.token_info_buf_size, "bytes"),
    MOEYARD_FIELD(ffn.token_data_buf, "slots of the tokens"),
    MOEYARD_FIELD(ffn.token_data_buf_size, "bytes"),
    MOEYARD_FIELD(ffn.polling_index, "micro-batch to wait for next"),
    MOEYARD_FIELD(ffn.layer_ids_buf, "collected layers"),
    MOEYARD_FIELD(ffn.layer_ids_buf_size, "bytes"),
    MOEYARD_FIELD(ffn.session_ids_buf, "collected sessions"),
    MOEYARD_FIELD(ffn.session_ids_buf_size, "bytes"),
    MOEYARD_FIELD(ffn.micro_batch_ids_buf, "collected micro-batches"),
    MOEYARD_FIELD(ffn.micro_batch_ids_buf_size, "bytes"),
    MOEYARD_FIELD(ffn.expert_ids_buf, "collected expert ids"),
    MOEYARD_FIELD(ffn.expert_ids_buf_size, "bytes"),
    MOEYARD_FIELD(ffn.out_num, "sessions collected"),
};
#undef MOEYARD_FIELD

bool is_address(const Field& field) { return std::string_view(field.name).ends_with("_buf"); }

std::string value_of(const ScheduleContext& context, const Field& field) {
  std::uint64_t value = 0;
  std::memcpy(&value, reinterpret_cast<const char*>(&context) + field.offset,
              static_cast<std::size_t>(field.bytes));
  return is_address(field) ? fmt::format("{:#x}", value) : fmt::format("{}", value);
}

void print_fields(const ScheduleContext& context) {
  fmt::print("{:>6}  {:<32} {:>18}  {}\n", "offset", "field", "value", "meaning");
  for (const Field& field : kFields)
    fmt::print("{:>6}  {:<32} {:>18}  {}\n", field.offset, field.name, value_of(context, field),
               field.meaning);
}

// Where the parts of the window begin and what they take, by the counts in common.
template <class Window>
void print_window(const char* name, const Window& window) {
  if (window.bytes() == UINT64_MAX)
    fmt::print("\n{}: the counts in common are too large for any memory\n", name);
  else
    fmt::print("\n{}: {} bytes of {}, slots from {} on, {} bytes in all\n", name, window.info_bytes(),
               std::string_view(name).starts_with("FFN") ? "descriptors" : "flags", window.data_offset(),
               window.bytes());
}

struct Reader {
  ScheduleUse use;
  const char* name;
};
constexpr Reader kFfnReaders[] = {
    {ScheduleUse::ffn_scheduler, "aclnnInplaceFfnWorkerScheduler"},
    {ScheduleUse::ffn_batching, "aclnnFfnWorkerBatching, needSchedule 0"},
    {ScheduleUse::ffn_batching_fused, "aclnnFfnWorkerBatching, needSchedule 1"},
};
constexpr Reader kAttentionReaders[] = {
    {ScheduleUse::attention_scheduler, "aclnnInplaceAttentionWorkerScheduler"},
    {ScheduleUse::attention_combine, "aclnnAttentionWorkerCombine, needSchedule 0"},
    {ScheduleUse::attention_combine_fused, "aclnnAttentionWorkerCombine, needSchedule 1"},
};

// What each operator of the worker's side says of the context; how many refuse it.
int print_problems(const ScheduleContext& context) {
  int refusals = 0;
  const bool attention = context.common.schedule_mode == 1;
  fmt::print("\n");
  for (const Reader& reader : attention ? kAttentionReaders : kFfnReaders) {
    const std::string problem = schedule_context_problem(context, reader.use);
    refusals += problem.empty() ? 0 : 1;
    fmt::print("{}: {}\n", reader.name, problem.empty() ? "accepts it" : problem);
  }
  if (context.control.run_flag == 0)
    fmt::print("control.run_flag is 0: schedulers return at once and take nothing\n");
  return refusals;
}

Status show(const std::string& path, int& code) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return model::bad_input("'{}' cannot be read; pass a file with the 1024 bytes of a context", path);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ScheduleContext context;
  if (bytes.size() != sizeof context)
    return model::bad_input("'{}' has {} bytes but a context has {}; copy exactly those from device memory",
                            path, bytes.size(), sizeof context);
  std::memcpy(&context, bytes.data(), sizeof context);
  print_fields(context);
  if (context.common.schedule_mode == 1)
    print_window("attention window", attention_window(context));
  else
    print_window("FFN window", ffn_window(context));
  const int refusals = print_problems(context);
  if (refusals != 0) code = static_cast<int>(Ending::mismatch);
  fmt::print("{}\n",
             refusals == 0 ? "PASS" : fmt::format("FAIL: {} of 3 operators refuse this context", refusals));
  return {};
}

}  // namespace

Command context_command() {
  auto path = std::make_shared<std::string>();
  Command command{"context", "Show a dumped ScheduleContext field by field, and what is wrong with it"};
  command.option("file", *path, "The 1024 bytes of a context, as they lie in device memory").required();
  command.run = [path] {
    int code = static_cast<int>(Ending::pass);
    const Status status = show(*path, code);
    if (status.ok()) return code;
    fmt::print(stderr, "moeyard context: {}\n", status.message());
    return status.code();
  };
  return command;
}

}  // namespace moeyard::tool
