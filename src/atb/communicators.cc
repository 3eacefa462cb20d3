// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/communicators.h"

#include <map>
#include <mutex>
#include <vector>

#include "atb/failure.h"
#include "atb/tickets.h"

namespace moeyard::atb_layer {
namespace {

// Communicators by key; those that could not be destroyed yet because a collective was still running.
struct Registry {
  struct Entry {
    std::mutex making;  // held while the communicator is being made
    std::weak_ptr<Communicator> communicator;
  };
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Entry>> entries;
  std::vector<::HcclComm> busy;
};

Registry& registry() {
  static auto* made = new Registry;  // threads may outlive static objects
  return *made;
}

std::string words_of(std::initializer_list<std::string> parts) {
  std::string words;
  for (const std::string& part : parts) words += part + '\n';
  return words;
}

}  // namespace

Communicator::~Communicator() {
  if (!owned_) return;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.busy.push_back(comm_);
  std::erase_if(all.busy, [](::HcclComm comm) { return HcclCommDestroy(comm) != HCCL_E_AGAIN; });
}

HcclResult share(const std::string& key, const std::function<HcclResult(::HcclComm&)>& make,
                 CommunicatorPtr& shared) {
  Registry& all = registry();
  std::shared_ptr<Registry::Entry> entry;
  {
    const std::lock_guard lock(all.mutex);
    std::erase_if(all.entries, [](const auto& known) {  // whose communicator is gone, and nobody makes it
      return known.second.use_count() == 1 && known.second->communicator.expired();
    });
    std::shared_ptr<Registry::Entry>& found = all.entries[key];
    if (found == nullptr) found = std::make_shared<Registry::Entry>();
    entry = found;
  }
  const std::lock_guard making(entry->making);
  CommunicatorPtr known;
  {
    const std::lock_guard lock(all.mutex);
    known = entry->communicator.lock();
  }
  if (known == nullptr) {
    ::HcclComm comm = nullptr;
    if (const HcclResult code = make(comm); code != HCCL_SUCCESS) return code;
    known = std::make_shared<Communicator>(comm, true);
    const std::lock_guard lock(all.mutex);
    entry->communicator = known;
  }
  shared = std::move(known);
  return HCCL_SUCCESS;
}

atb::Status check_ranks(const char* name, const Ranks& ranks, const char* more) {
  if (ranks.size <= 0 || ranks.rank < 0 || ranks.rank >= ranks.size || ranks.root < 0 ||
      ranks.root >= ranks.size)
    return fail(atb::ERROR_INVALID_PARAM,
                "%s: rank is %d, rankRoot %d and rankSize %d but both ranks must lie in [0, rankSize)", name,
                ranks.rank, ranks.root, ranks.size);
  if (ranks.backend != "hccl" && ranks.backend != "lccl" && ranks.backend != more)
    return fail(atb::ERROR_INVALID_PARAM, "%s: backend is \"%s\" but must be \"hccl\" or \"%s\"", name,
                ranks.backend.c_str(), more);
  if (ranks.mode != atb::infer::COMM_MULTI_PROCESS && ranks.mode != atb::infer::COMM_MULTI_THREAD)
    return fail(atb::ERROR_INVALID_PARAM,
                "%s: commMode is %d but must be COMM_MULTI_PROCESS or COMM_MULTI_THREAD", name,
                static_cast<int>(ranks.mode));
  return atb::NO_ERROR;
}

atb::Status connect(const char* name, const Ranks& ranks, CommunicatorPtr& communicator) {
  HcclResult code = HCCL_SUCCESS;
  std::int32_t device = -1;  // that the communicator will belong to
  aclrtGetDevice(&device);
  const std::string rank = words_of({std::to_string(ranks.rank), std::to_string(device)}),
                    size = std::to_string(ranks.size), root = std::to_string(ranks.root);
  if (ranks.given != nullptr) {
    communicator = std::make_shared<Communicator>(ranks.given, false);
  } else if (!ranks.table.empty()) {
    code = share(
        words_of({"table", ranks.table, rank}),
        [&](::HcclComm& comm) {
          return HcclCommInitClusterInfo(ranks.table.c_str(), static_cast<std::uint32_t>(ranks.rank), &comm);
        },
        communicator);
  } else {
    const std::string words = words_of({"domain", ranks.domain, root, size});
    code = share(
        words + rank, [&](::HcclComm& comm) { return meet(words, ranks.rank, ranks.size, comm); },
        communicator);
  }
  std::uint32_t found_rank = 0, found_size = 0;
  if (code == HCCL_SUCCESS) code = HcclGetRankId(communicator->get(), &found_rank);
  if (code == HCCL_SUCCESS) code = HcclGetRankSize(communicator->get(), &found_size);
  if (code != HCCL_SUCCESS) return atb::ERROR_HCCL_FAIL;  // HCCL has left a message
  if (found_rank == static_cast<std::uint32_t>(ranks.rank) &&
      found_size == static_cast<std::uint32_t>(ranks.size))
    return atb::NO_ERROR;
  return fail(atb::ERROR_INVALID_PARAM,
              "%s: rank is %d and rankSize %d but the communicator has this process as rank %u of %u", name,
              ranks.rank, ranks.size, found_rank, found_size);
}

}  // namespace moeyard::atb_layer
