// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/graveyard.h"

#include <deque>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "atb/failure.h"

namespace moeyard::atb_layer {
namespace {

using atb::Status;

Status was_destroyed(const char* function) {
  return fail(atb::ERROR_INVALID_OPERATION_ADDR, "%s: the operation was destroyed; create another one",
              function);
}

// What a destroyed operation becomes.
class Destroyed final : public atb::Operation {
 public:
  std::string GetName() const override { return "DestroyedOperation"; }
  Status InferShape(const atb::SVector<atb::TensorDesc>&, atb::SVector<atb::TensorDesc>&) const override {
    return was_destroyed("InferShape");
  }
  uint32_t GetInputNum() const override { return 0; }
  uint32_t GetOutputNum() const override { return 0; }
  Status Setup(const atb::VariantPack&, uint64_t&, atb::Context*) override { return was_destroyed("Setup"); }
  Status Execute(const atb::VariantPack&, uint8_t*, uint64_t, atb::Context*) override {
    return was_destroyed("Execute");
  }
};

constexpr std::size_t kRemembered = 256;

struct Registry {
  std::mutex mutex;
  std::unordered_set<const void*> alive;  // built-in ones
  std::unordered_map<const void*, const void*> owners;
  std::unordered_set<const void*> buried;
  std::deque<void*> order;  // of the buried ones
};
Registry& registry() {
  static auto* made = new Registry;  // operations may outlive static objects
  return *made;
}

}  // namespace

Fate fate_of(const atb::Operation* operation) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (all.buried.count(operation) != 0) return Fate::destroyed;
  if (all.owners.count(operation) != 0) return Fate::owned;
  return all.alive.count(operation) != 0 ? Fate::built_in : Fate::unknown;
}

bool own(const atb::Operation* operation, const void* owner) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return all.buried.count(operation) == 0 && all.owners.emplace(operation, owner).second;
}

void disown(const atb::Operation* operation) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.owners.erase(operation);
}

void* allocate_operation(std::size_t bytes) {
  void* memory = ::operator new(bytes);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.alive.insert(memory);
  return memory;
}

void bury_operation(void* operation) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.alive.erase(operation);
  all.owners.erase(operation);
  new (operation) Destroyed;
  all.buried.insert(operation);
  all.order.push_back(operation);
  if (all.order.size() <= kRemembered) return;
  all.buried.erase(all.order.front());
  ::operator delete(all.order.front());
  all.order.pop_front();
}

}  // namespace moeyard::atb_layer
