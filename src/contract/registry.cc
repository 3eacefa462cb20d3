// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "contract/registry.h"

#include <algorithm>
#include <mutex>
#include <tuple>

namespace moeyard::contract {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<const Contract*> contracts;
};

// Made by the first contract and kept, as contracts of other files end in any order.
Registry& registry() {
  static auto* made = new Registry;
  return *made;
}

}  // namespace

void remember(const Contract& contract) {
  const std::lock_guard lock(registry().mutex);
  registry().contracts.push_back(&contract);
}

void forget(const Contract& contract) {
  const std::lock_guard lock(registry().mutex);
  std::erase(registry().contracts, &contract);
}

std::vector<const Contract*> all() {
  const std::lock_guard lock(registry().mutex);
  std::vector<const Contract*> sorted = registry().contracts;
  std::ranges::sort(sorted, {}, [](const Contract* contract) {
    return std::tie(contract->about().family, contract->about().name);
  });
  return sorted;
}

}  // namespace moeyard::contract
