// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "executor/dump.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/npy.h"
#include "base/settings.h"
#include "base/trace.h"
#include "comm/registry.h"

namespace moeyard::executor {
namespace {

using contract::Direction;
using contract::Param;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int kSchema = 1;

void write(const fs::path& path, std::string_view text, std::string_view more = {}) {
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.write(more.data(), static_cast<std::streamsize>(more.size()));
  file.close();
  if (!file) throw std::runtime_error(path.string() + " cannot be written");
}

// Variables that change what calls do.
Json environment_of_process() {
  Json variables = Json::object();
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos && text.starts_with("HCCL_"))
      variables[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  return variables;
}

// The folder of this process, and what has been written there.
class Dump {
 public:
  static Dump& get() {
    static auto* one = new Dump;  // kept, as streams may outlive static objects
    return *one;
  }
  bool usable() const { return usable_.load(std::memory_order_relaxed); }
  void give_up(const char* why) {
    if (usable_.exchange(false))
      log_error("MOEYARD_DUMP={}: {}; nothing more is dumped", root_.string(), why);
  }
  const fs::path& root() const { return root_; }
  const Json& environment() const { return environment_; }
  std::int64_t next_of_device(int device) {
    const std::lock_guard lock(mutex_);
    return calls_of_device_[device]++;
  }
  std::int64_t next_of_group(const std::string& name, int rank) {
    const std::lock_guard lock(mutex_);
    return calls_of_group_[{name, rank}]++;
  }

 private:
  Dump() : root_(for_this_process(settings().dump)), environment_(environment_of_process()) {
    try {
      fs::create_directories(root_);
      if (fs::exists(root_ / "manifest.json"))
        throw std::runtime_error("the folder has a dump already; name another one, or remove it");
      const Json manifest = {{"schema", kSchema},
                             {"soc", name_of(product())},
                             {"process", ::getpid()},
                             {"environment", environment_}};
      write(root_ / "manifest.json", manifest.dump(1) + "\n");
    } catch (const std::exception& error) {
      give_up(error.what());
    }
  }
  const fs::path root_;
  const Json environment_;
  std::atomic<bool> usable_{true};
  std::mutex mutex_;
  std::map<int, std::int64_t> calls_of_device_;
  std::map<std::pair<std::string, int>, std::int64_t> calls_of_group_;
};

// One call's folder.
class Record {
 public:
  Record(PlannedCall& call, const Run& run)
      : call_(call), run_(run), number_(Dump::get().next_of_device(run.device)) {
    folder_ = Dump::get().root() / fmt::format("device_{}", run.device) /
              fmt::format("{:06}_{}", number_, run.function);
    fs::create_directories(folder_);
  }

  void write_inputs() {
    for (const Param& param : call_.contract.about().params) {
      const std::string name(param.name);
      parameters_[name] = value_of(param, name);
    }
    write_description(nullptr, "", {});
  }

  void write_outputs(const Status& status) {
    Json outputs = Json::object();
    for (const Param& param : call_.contract.about().params) {
      if (param.direction != Direction::out && param.direction != Direction::in_out) continue;
      const std::string name(param.name);
      if (param.access.tensor != nullptr) {
        const TensorView& view = *param.access.tensor(call_.args());
        if (view.present()) outputs[name] = write_tensor(view, "out_" + name);
      } else if (param.access.list != nullptr) {
        Json files = Json::array();
        for (const TensorView& item : param.access.list(call_.args())->items)
          files.push_back(item.present()
                              ? Json(write_tensor(item, fmt::format("out_{}_{}", name, files.size())))
                              : Json());
        outputs[name] = std::move(files);
      }
    }
    write_description(status.code(), status.ok() ? "" : status.message(), outputs);
  }

 private:
  std::string write_tensor(const TensorView& view, const std::string& name) const {
    std::string elements(static_cast<std::size_t>(bytes_of(view.dtype, view.numel())), '\0');
    copy_elements_out(view, reinterpret_cast<std::byte*>(elements.data()));
    const std::string file = name + ".npy";
    write(folder_ / file, npy_header(view.dtype, view.dims()), elements);
    return file;
  }

  Json tensor_of(const TensorView& view, Direction direction, const std::string& name) {
    if (!view.present()) return nullptr;
    Json spec = {{"dtype", moeyard::name_of(view.dtype)}, {"shape", view.dims()}};
    if (!view.contiguous()) {  // in memory that begins with the lowest element
      spec["strides"] = std::span(view.strides, view.dims().size());
      spec["offset"] = view.numel() == 0 ? 0 : view.offset - view.extent().low;
    }
    if (view.format == ACL_FORMAT_FRACTAL_NZ) spec["format"] = "FRACTAL_NZ";
    if (view.numel() == 0) {
      if (direction != Direction::out) spec["file"] = write_tensor(view, name);
      return spec;
    }
    // An output may lie where an input does, and two inputs may be one tensor.
    const auto [place, is_new] =
        names_.try_emplace(view.data + bytes_of(view.dtype, view.extent().low), name);
    if (!is_new && direction == Direction::out) spec["same_as"] = place->second;
    if (direction != Direction::out) spec["file"] = write_tensor(view, name);
    return spec;
  }

  Json value_of(const Param& param, const std::string& name) {
    void* args = call_.args();
    const auto& access = param.access;
    if (access.tensor != nullptr) return tensor_of(*access.tensor(args), param.direction, name);
    if (access.list != nullptr) {
      if (!access.list(args)->given) return nullptr;
      Json list = Json::array();
      for (const TensorView& item : access.list(args)->items)
        list.push_back(tensor_of(item, param.direction, fmt::format("{}_{}", name, list.size())));
      return list;
    }
    if (access.integers != nullptr) {
      const IntArrayView* integers = access.integers(args);
      return integers->given ? Json(integers->items) : Json();
    }
    if (access.scalar != nullptr) {
      const ScalarView* scalar = access.scalar(args);
      return !scalar->given ? Json() : scalar->is_integer ? Json(scalar->integer) : Json(scalar->number);
    }
    if (access.integer != nullptr) return access.integer(args);
    if (access.number != nullptr) return access.number(args);
    const std::string text(access.text(args));
    add_group(name, text);
    return text;
  }

  void add_group(const std::string& parameter, const std::string& name) {
    const auto group = name.empty() ? nullptr : comm::find_rank(name, run_.device);
    if (group == nullptr) return;
    groups_[parameter] = {{"name", name},
                          {"ranks", group->size()},
                          {"rank", group->rank()},
                          {"buffer_mb", group->limits().buffer_mb},
                          {"number", Dump::get().next_of_group(name, group->rank())}};
  }

  // First without a code, so that a call that never ends can be seen.
  void write_description(const Json& code, const std::string& message, const Json& outputs) const {
    Json all = {{"schema", kSchema}, {"function", run_.function}, {"soc", moeyard::name_of(product())}};
    if (!Dump::get().environment().empty()) all["environment"] = Dump::get().environment();
    all["parameters"] = parameters_;
    if (!groups_.empty()) all["groups"] = groups_;
    all["recorded"] = {{"device", run_.device},
                       {"number", number_},
                       {"code", code},
                       {"message", message},
                       {"outputs", outputs}};
    write(folder_ / "call.json", all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  PlannedCall& call_;
  const Run& run_;
  const std::int64_t number_;
  fs::path folder_;
  Json parameters_ = Json::object(), groups_ = Json::object();
  std::map<const std::byte*, std::string> names_;  // of memory
};

// Files must not change what the program sees.
template <class Work>
void guarded(Work work) noexcept {
  try {
    if (Dump::get().usable()) work();
  } catch (const std::exception& error) {
    Dump::get().give_up(error.what());
  }
}

}  // namespace

bool detail::dump_is_wanted() { return !settings().dump.empty(); }

Status run_dumped(PlannedCall& call, const Run& run) {
  std::optional<Record> record;
  guarded([&] { record.emplace(call, run).write_inputs(); });
  Status status = call.run(run);
  if (record) guarded([&] { record->write_outputs(status); });
  return status;
}

}  // namespace moeyard::executor
