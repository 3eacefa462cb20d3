// Moeyard. SPDX-License-Identifier: Apache-2.0
// Good calls of the first phase of aclnnMoeDistributeDispatchV4, for tests that spoil them.
#pragma once
#include <memory>

#include "oracle/ep_part.h"
#include "support/refusals.h"

namespace oracle {

inline constexpr int kNull = 161001, kInvalid = 161002, kTiling = 561002;

// A good call of rank 0 of two, and whatever tensors spoil it.
struct Call : DispatchParams {
  std::shared_ptr<EpPart> part;
  std::vector<std::shared_ptr<Tensor>> kept;

  aclnnStatus phase_one(std::uint64_t* size, aclOpExecutor** executor) { return plan(*this, size, executor); }
  aclTensor* make(aclDataType dtype, std::vector<std::int64_t> shape, Layout layout = Layout::dense) {
    kept.push_back(std::make_shared<Tensor>(dtype, std::move(shape), 8, layout));
    return *kept.back();
  }
};

class Calls {
 public:
  explicit Calls(PartSize size, int ranks = 2) : group(ranks), size_(size) {}
  Call good() const {
    Call call;
    call.part = std::make_shared<EpPart>(group, 0, size_);
    static_cast<DispatchParams&>(call) = call.part->dispatch;
    return call;
  }
  template <std::size_t kCount>
  void expect(const Refusal<Call> (&table)[kCount]) const {
    Call call = good();
    EXPECT_EQ(plan_only(static_cast<DispatchParams&>(call)), 0) << recent_message();
    expect_refusals(table, [this] { return good(); });
  }
  // What the products that are not in a table accept.
  void expect_accepted(const std::function<void(Call&)>& change) const {
    Call call = good();
    change(call);
    EXPECT_EQ(plan_only(static_cast<DispatchParams&>(call)), 0) << recent_message();
  }

  const Device device;
  const EpGroup group;

 private:
  const PartSize size_;
};

}  // namespace oracle
