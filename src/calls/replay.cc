// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "calls/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <thread>

#include "acl/acl.h"
#include "base/npy.h"
#include "base/settings.h"
#include "calls/groups.h"
#include "calls/handles.h"
#include "model/device.h"
#include "model/errors.h"
#include "model/mapped_file.h"

namespace moeyard::calls {
namespace {

using contract::Direction;
using contract::Param;
using model::bad_input;
using model::run_failed;
namespace fs = std::filesystem;

constexpr std::size_t kMostCalls = 1'000'000;
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
constexpr std::int64_t kMostSpread = 64;  // elements of memory per element of a tensor with strides
constexpr std::uint64_t kMostWorkspace = std::uint64_t{1} << 36;
constexpr int kFills[] = {0x5A, 0xA5};  // what differs afterwards was not written

const Param* find_param(const Function& function, std::string_view parameter) {
  const std::string_view name = name_in_contract(function, parameter);
  for (const Param& param : contract_of(function).about().params)
    if (param.name == name) return &param;
  return nullptr;
}

std::int64_t count_of(const TensorSpec& tensor) { return element_count(tensor).value_or(0); }

// One tensor of a call, single or member of a list.
struct Item {
  const TensorSpec* tensor;
  std::string name;  // "x", "out_3": what same_as and files are called after
  const Param* param;
  std::string output;  // file with what was recorded; empty: none
};

std::vector<Item> items_of(const Recorded& recorded) {
  std::vector<Item> items;
  for (std::size_t i = 0; i < recorded.call.values.size(); ++i) {
    const Param* param = find_param(*recorded.call.function, recorded.call.function->parameters[i].name);
    if (param == nullptr) continue;
    const std::string name(param->name);
    const auto found = recorded.outcome.outputs.find(name);
    const auto file = [&](std::size_t member) {
      const bool has = found != recorded.outcome.outputs.end() && member < found->second.size();
      return has ? found->second[member] : std::string();
    };
    if (const auto* tensor = std::get_if<TensorSpec>(&recorded.call.values[i]))
      items.push_back({tensor, name, param, file(0)});
    if (const auto* list = std::get_if<TensorList>(&recorded.call.values[i]))
      for (std::size_t member = 0; member < list->size(); ++member)
        if ((*list)[member])
          items.push_back({&*(*list)[member], fmt::format("{}_{}", name, member), param, file(member)});
  }
  return items;
}

// A file of elements, which stay mapped.
struct Elements {
  std::unique_ptr<model::MappedFile> file;
  std::span<const std::byte> bytes;
};

Result<Elements> read_elements(const fs::path& folder, const std::string& name, const TensorSpec& tensor) {
  const fs::path path = folder / name;
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(path, error)))
    return bad_input("{} is not there, or no plain file.", path.string());
  auto file = std::make_unique<model::MappedFile>(MOEYARD_TRY(model::MappedFile::open(path)));
  const auto bytes = npy_elements(file->bytes(), tensor.dtype, tensor.shape);
  if (!bytes) return bad_input("{} {}.", path.string(), bytes.error().message());
  return Elements{std::move(file), *bytes};
}

// Whether memory can be made for it.
Status check_tensor(const Recorded& recorded, const Item& item) {
  const TensorSpec& tensor = *item.tensor;
  const auto refuse = [&](const char* why) {
    return bad_input("{}: {} {}.", (recorded.call.folder / "call.json").string(), item.name, why);
  };
  const DtypeInfo* info = find_dtype(tensor.dtype);
  if (info == nullptr || info->bits == 0) return refuse("has a data type that cannot be stored");
  const auto count = element_count(tensor);
  if (!count || *count > kMostElements || tensor.shape.size() > kMaxRank)
    return refuse("has a shape that cannot be stored");
  if (tensor.file.empty() && item.output.empty() && *count > 0 && item.param->direction != Direction::out)
    return refuse("has no file of elements");
  if (item.param->direction == Direction::out && item.output.empty() && *count > 0)
    return refuse("has no file of what was recorded");
  return {};
}

TensorView view_of(const TensorSpec& tensor) {
  TensorView view;
  view.dtype = tensor.dtype;
  view.format = tensor.format;
  view.rank = static_cast<std::int32_t>(tensor.shape.size());
  view.offset = tensor.offset;
  std::int64_t dense = 1;
  for (std::size_t axis = tensor.shape.size(); axis-- > 0;) {
    view.shape[axis] = tensor.shape[axis];
    view.strides[axis] = tensor.strides.empty() ? dense : tensor.strides[axis];
    dense *= std::max<std::int64_t>(1, tensor.shape[axis]);
  }
  return view;
}

// Memory for the tensors of one call.
class Memory {
 public:
  static Result<Memory> make(const Recorded& recorded, int fill) {
    Memory memory;
    const auto items = items_of(recorded);
    for (const Item& item : items) {
      MOEYARD_TRY(check_tensor(recorded, item));
      MOEYARD_TRY(memory.reserve(recorded, item));
    }
    for (auto& [name, block] : memory.blocks_) {
      block.data = MOEYARD_TRY(model::allocate(block.bytes));
      if (block.bytes > 0) std::memset(block.data.get(), fill, static_cast<std::size_t>(block.bytes));
    }
    for (const Item& item : items) MOEYARD_TRY(memory.load(recorded, item));
    return memory;
  }
  void* address_of(const TensorSpec* tensor) const {
    const auto found = block_of_.find(tensor);
    return found == block_of_.end() ? nullptr : found->second->data.get();
  }
  std::vector<std::byte> elements_of(const TensorSpec& tensor) const {
    TensorView view = view_of(tensor);
    view.data = static_cast<std::byte*>(address_of(&tensor));
    std::vector<std::byte> elements(static_cast<std::size_t>(bytes_of(tensor.dtype, count_of(tensor))));
    copy_elements_out(view, elements.data());
    return elements;
  }

 private:
  // Tensors that share memory share a block, which has the name of the first one.
  Status reserve(const Recorded& recorded, const Item& item) {
    const TensorSpec& tensor = *item.tensor;
    const TensorView view = view_of(tensor);
    const std::int64_t count = count_of(tensor);
    if (!view.within(kMostElements) ||
        (count > 0 && (view.extent().low < 0 || view.extent().high / kMostSpread > count + 4096)))
      return bad_input("{}: {} has strides that reach too far.",
                       (recorded.call.folder / "call.json").string(), item.name);
    const std::int64_t bytes = count > 0 ? bytes_of(tensor.dtype, view.extent().high + 1) : 0;
    const auto shared = blocks_.find(tensor.same_as);
    Block& block = shared != blocks_.end() ? shared->second : blocks_[item.name];
    block.bytes = std::max(block.bytes, bytes);
    block_of_[&tensor] = &block;
    return {};
  }
  Status load(const Recorded& recorded, const Item& item) {
    const TensorSpec& tensor = *item.tensor;
    if (tensor.file.empty() || count_of(tensor) == 0) return {};
    const Elements elements = MOEYARD_TRY(read_elements(recorded.call.folder, tensor.file, tensor));
    TensorView view = view_of(tensor);
    view.data = static_cast<std::byte*>(address_of(&tensor));
    copy_elements_in(elements.bytes.data(), view);
    return {};
  }

  struct Block {
    model::DeviceMemory data;
    std::int64_t bytes = 0;
  };
  std::map<std::string, Block> blocks_;  // its members stay where they are, also when the map moves
  std::map<const TensorSpec*, Block*> block_of_;
};

// Everything one run of a call leaves.
struct Ran {
  std::int32_t code = 0;
  std::string message;
  std::vector<std::vector<std::byte>> outputs;  // of items with a recorded file
};

std::string last_message() {
  const char* text = aclGetRecentErrMsg();
  return text != nullptr ? text : "";
}

Result<Ran> run_once(const Recorded& recorded, int device,
                     const std::vector<std::pair<std::size_t, std::string>>& groups, int fill) {
  MOEYARD_TRY(model::checked(aclrtSetDevice(device), "aclrtSetDevice"));
  aclrtStream created = nullptr;
  MOEYARD_TRY(model::checked(aclrtCreateStream(&created), "aclrtCreateStream"));
  const model::Stream stream(created);
  const Memory memory = MOEYARD_TRY(Memory::make(recorded, fill));
  Handles handles(recorded.call,
                  [&](const Parameter&, const TensorSpec& tensor) { return memory.address_of(&tensor); });
  for (const auto& [parameter, name] : groups) handles.set_text(parameter, name);
  while (aclGetRecentErrMsg() != nullptr) {
  }
  Ran ran;
  std::uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  ran.code = handles.plan(&size, &executor);
  model::DeviceMemory workspace;
  if (ran.code == 0) {
    if (size > kMostWorkspace)
      return bad_input("{} needs a workspace of {} bytes.", (recorded.call.folder / "call.json").string(),
                       size);
    workspace = MOEYARD_TRY(model::allocate(static_cast<std::int64_t>(size)));
    ran.code = recorded.call.function->run(workspace.get(), size, executor, stream.get());
  }
  if (ran.code == 0) ran.code = aclrtSynchronizeStream(stream.get());
  if (ran.code != 0) ran.message = last_message();
  for (const Item& item : items_of(recorded))
    if (!item.output.empty()) ran.outputs.push_back(memory.elements_of(*item.tensor));
  return ran;
}

// --- Sets --------------------------------------------------------------------------------------------------

std::string why_not_alone(const Recorded& recorded) {
  if (!recorded.outcome.code) return "it had not ended when the program did";
  if (contract_of(*recorded.call.function).about().family == "afd")
    return "its tensors hold addresses and windows of the program that was recorded";
  if (contract_of(*recorded.call.function).about().name.ends_with("Teardown"))
    return "it completes what the other half began in the communicator that was recorded";
  const auto items = items_of(recorded);
  for (const Item& item : items) {
    const auto shared = std::ranges::find(items, item.tensor->same_as, &Item::name);
    if (item.param->direction == Direction::out && shared != items.end() &&
        shared->param->direction == Direction::out)
      return fmt::format("{} and {} lie in the same memory, where the last one to be written stays",
                         shared->name, item.name);
  }
  return {};
}

// Ranks that were refused calls, or made some alone, have recorded other numbers of them.
std::string why_not_together(const Recorded& first, const Recorded& other) {
  if (first.call.function == other.call.function) return {};
  return fmt::format("ranks of its group recorded different calls under its number, {} and {}",
                     first.call.function->name, other.call.function->name);
}

// The communicators of a set: ranks by the place of their call in it.
Result<std::map<std::string, std::vector<std::int32_t>>> groups_of(const std::vector<Recorded>& calls,
                                                                   const std::vector<std::size_t>& set,
                                                                   std::string& missing) {
  std::map<std::string, std::vector<std::int32_t>> groups;
  for (std::size_t place = 0; place < set.size(); ++place)
    for (const auto& [parameter, group] : calls[set[place]].call.groups) {
      auto& devices = groups.try_emplace(group.name, static_cast<std::size_t>(group.ranks), -1).first->second;
      if (std::ssize(devices) != group.ranks || devices[static_cast<std::size_t>(group.rank)] >= 0)
        return bad_input("{} says something else of group {} than other ranks do.",
                         (calls[set[place]].call.folder / "call.json").string(),
                         model::in_quotes(group.name));
      devices[static_cast<std::size_t>(group.rank)] = static_cast<std::int32_t>(place);
    }
  for (const auto& [name, devices] : groups)
    if (const auto absent = std::ranges::find(devices, -1); absent != devices.end() && missing.empty())
      missing = fmt::format("{} of {} ranks did not record it (rank {})", std::ranges::count(devices, -1),
                            devices.size(), absent - devices.begin());
  return groups;
}

// Communicators are kept, as programs call many operators on one.
class Communicators {
 public:
  Result<std::string> name_of(const std::vector<std::int32_t>& devices, std::int64_t buffer_mb) {
    auto& made = made_[{devices, buffer_mb}];
    if (made == nullptr) made = MOEYARD_TRY(Communicator::make(devices, buffer_mb));
    return made->name();
  }
  static Communicators& get() {
    static Communicators all;
    return all;
  }

 private:
  std::map<std::pair<std::vector<std::int32_t>, std::int64_t>, std::unique_ptr<Communicator>> made_;
};

using GroupNames = std::vector<std::pair<std::size_t, std::string>>;  // of a call: parameter, name to pass

Result<std::vector<GroupNames>> connect(const std::vector<Recorded>& calls,
                                        const std::vector<std::size_t>& set,
                                        const std::map<std::string, std::vector<std::int32_t>>& groups) {
  std::vector<GroupNames> names(set.size());
  for (std::size_t place = 0; place < set.size(); ++place)
    for (const auto& [parameter, group] : calls[set[place]].call.groups)
      names[place].emplace_back(
          calls[set[place]].call.index_of(parameter),
          MOEYARD_TRY(Communicators::get().name_of(groups.at(group.name), group.buffer_mb)));
  return names;
}

void use_settings(const Call& call) {
  for (const auto& [name, value] : call.environment) setenv(name.c_str(), value.c_str(), 1);
  setenv("MOEYARD_TIMEOUT_MS", "60000", 0);
  if (!call.soc.empty() && call.soc != name_of(product())) {
    setenv("MOEYARD_SOC", call.soc.c_str(), 1);
    reload_settings();
  }
}

// All calls of a set at the same time, a thread each.
Result<std::vector<Ran>> run_set(const std::vector<Recorded>& calls, const std::vector<std::size_t>& set,
                                 const std::vector<GroupNames>& names, int fill) {
  std::vector<Result<Ran>> results(set.size(), Result<Ran>(Status(1, "")));
  const auto run_place = [&](std::size_t place) {
    try {
      results[place] = run_once(calls[set[place]], static_cast<int>(place), names[place], fill);
    } catch (const std::exception& error) {
      results[place] = run_failed("{} cannot be run: {}.",
                                  (calls[set[place]].call.folder / "call.json").string(), error.what());
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t place = 1; place < set.size(); ++place) threads.emplace_back(run_place, place);
    run_place(0);
  }
  std::vector<Ran> ran;
  for (auto& result : results) ran.push_back(MOEYARD_TRY(std::move(result)));
  return ran;
}

Result<Comparison> compare_run(const Recorded& recorded, const Ran& first, const Ran& second) {
  Comparison made{&recorded, "", first.code, first.message, {}};
  if (first.code != 0 || !made.same_code()) return made;
  std::size_t output = 0;
  for (const Item& item : items_of(recorded)) {
    if (item.output.empty()) continue;
    const Elements want = MOEYARD_TRY(read_elements(recorded.call.folder, item.output, *item.tensor));
    made.outputs.push_back({item.name, *item.tensor,
                            compare(item.tensor->dtype, count_of(*item.tensor), first.outputs[output],
                                    want.bytes, second.outputs[output])});
    ++output;
  }
  return made;
}

// A folder with a manifest is that of one process; else those of several lie in it.
std::vector<fs::path> folders_of_processes(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "manifest.json", error)) return {folder};
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (fs::exists(entry.path() / "manifest.json", error)) folders.push_back(entry.path());
  return folders;
}

}  // namespace

Result<std::vector<Recorded>> read_dump(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return bad_input("{} is no folder.", folder.string());
  std::vector<fs::path> paths;
  for (const fs::path& process : folders_of_processes(folder))
    for (const auto& device : fs::directory_iterator(process, error)) {
      if (!device.is_directory(error) || !device.path().filename().string().starts_with("device_")) continue;
      for (const auto& call : fs::directory_iterator(device.path(), error)) {
        if (fs::is_regular_file(call.path() / "call.json", error)) paths.push_back(call.path() / "call.json");
        if (paths.size() > kMostCalls)
          return bad_input("{} has more than {} calls.", folder.string(), kMostCalls);
      }
    }
  if (paths.empty())
    return bad_input("{} has no recorded calls; MOEYARD_DUMP={} records those of a program.", folder.string(),
                     folder.string());
  std::ranges::sort(paths);
  std::vector<Recorded> calls;
  for (const fs::path& path : paths) calls.push_back(MOEYARD_TRY(read_recorded_call(path)));
  std::ranges::stable_sort(
      calls, {}, [](const Recorded& one) { return std::pair(one.outcome.device, one.outcome.number); });
  return calls;
}

std::vector<std::vector<std::size_t>> sets_of(const std::vector<Recorded>& calls) {
  std::vector<std::size_t> root(calls.size());
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](std::size_t i) {
    while (root[i] != i) i = root[i] = root[root[i]];
    return i;
  };
  std::map<std::pair<std::string, std::int64_t>, std::size_t> first_of_meeting;
  for (std::size_t i = 0; i < calls.size(); ++i)
    for (const auto& [parameter, group] : calls[i].call.groups) {
      const auto [place, is_new] = first_of_meeting.try_emplace({group.name, group.number}, i);
      if (!is_new) root[find(i)] = find(place->second);
    }
  std::map<std::size_t, std::vector<std::size_t>> sets;
  for (std::size_t i = 0; i < calls.size(); ++i) sets[find(i)].push_back(i);
  std::vector<std::vector<std::size_t>> list;
  for (auto& [first, set] : sets) list.push_back(std::move(set));
  std::ranges::sort(list);
  return list;
}

Result<std::vector<Comparison>> replay(const std::vector<Recorded>& calls,
                                       const std::vector<std::size_t>& set) {
  std::string skipped;
  for (const std::size_t i : set) {
    if (skipped.empty()) skipped = why_not_alone(calls[i]);
    if (skipped.empty()) skipped = why_not_together(calls[set.front()], calls[i]);
  }
  const auto groups = MOEYARD_TRY(groups_of(calls, set, skipped));
  std::vector<Comparison> made;
  if (!skipped.empty()) {
    for (const std::size_t i : set) made.push_back({&calls[i], skipped, 0, "", {}});
    return made;
  }
  use_settings(calls[set.front()].call);
  const auto names = MOEYARD_TRY(connect(calls, set, groups));
  const auto first = MOEYARD_TRY(run_set(calls, set, names, kFills[0]));
  const auto second = MOEYARD_TRY(run_set(calls, set, names, kFills[1]));
  for (std::size_t place = 0; place < set.size(); ++place)
    made.push_back(MOEYARD_TRY(compare_run(calls[set[place]], first[place], second[place])));
  return made;
}

Result<Comparison> compare_recorded(const Recorded& call, const Recorded* other) {
  Comparison made{&call, "", 0, "", {}};
  if (other == nullptr || other->call.function != call.call.function) {
    made.skipped = other == nullptr ? "the other dump does not have it"
                                    : fmt::format("it is a call of {} there", other->call.function->name);
    return made;
  }
  if (!call.outcome.code || !other->outcome.code) {
    made.skipped = "it had not ended when the program did";
    return made;
  }
  made.code = *other->outcome.code, made.message = other->outcome.message;
  if (made.code != 0 || !made.same_code()) return made;
  const auto theirs = items_of(*other);
  for (const Item& item : items_of(call)) {
    if (item.output.empty()) continue;
    MOEYARD_TRY(check_tensor(call, item));
    const auto their = std::ranges::find(theirs, item.name, &Item::name);
    if (their == theirs.end() || their->output.empty() || their->tensor->dtype != item.tensor->dtype ||
        their->tensor->shape != item.tensor->shape)
      return bad_input("{} has no {} like that of {}.", (other->call.folder / "call.json").string(),
                       item.name, (call.call.folder / "call.json").string());
    const Elements want = MOEYARD_TRY(read_elements(call.call.folder, item.output, *item.tensor));
    const Elements got = MOEYARD_TRY(read_elements(other->call.folder, their->output, *item.tensor));
    made.outputs.push_back({item.name, *item.tensor,
                            compare(item.tensor->dtype, count_of(*item.tensor), got.bytes, want.bytes)});
  }
  return made;
}

}  // namespace moeyard::calls
