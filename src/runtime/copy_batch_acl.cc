// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <vector>

#include "runtime/acl_call.h"
#include "runtime/context.h"
#include "runtime/copy.h"
#include "runtime/queue_work.h"

using namespace moeyard;
using namespace moeyard::runtime;

namespace {

struct Batch {
  void** dsts;
  size_t* rooms;
  void** srcs;
  size_t* sizes;
  size_t copies;
  aclrtMemcpyBatchAttr* attributes;
  size_t* attribute_begins;
  size_t attribute_count;
};

Status check_arrays(const char* function, const Batch& batch, const size_t* failIndex) {
  MOEYARD_TRY(require(function, "failIndex", failIndex));
  MOEYARD_TRY(require(function, "dsts", batch.dsts));
  MOEYARD_TRY(require(function, "destMaxs", batch.rooms));
  MOEYARD_TRY(require(function, "srcs", batch.srcs));
  MOEYARD_TRY(require(function, "sizes", batch.sizes));
  MOEYARD_TRY(require(function, "attrs", batch.attributes));
  MOEYARD_TRY(require(function, "attrsIndexes", batch.attribute_begins));
  if (batch.copies == 0 || batch.attribute_count == 0 || batch.attribute_count > batch.copies)
    return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
                "{}: numBatches {} must be at least 1 and numAttrs {} in [1, numBatches]", function,
                batch.copies, batch.attribute_count);
  for (size_t i = 0; i < batch.attribute_count; ++i) {
    const size_t begin = batch.attribute_begins[i];
    const bool right = i == 0 ? begin == 0 : begin > batch.attribute_begins[i - 1] && begin < batch.copies;
    if (!right)
      return fail(
          ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
          "{}: attrsIndexes[{}] is {} but the indexes must begin with 0, ascend and stay below numBatches {}",
          function, i, begin, batch.copies);
  }
  return {};
}

// The kind that two locations amount to.
aclrtMemcpyKind kind_of(const aclrtMemcpyBatchAttr& attribute) {
  const bool to_device = attribute.dstLoc.type == ACL_MEM_LOCATION_TYPE_DEVICE;
  const bool from_device = attribute.srcLoc.type == ACL_MEM_LOCATION_TYPE_DEVICE;
  if (to_device) return from_device ? ACL_MEMCPY_DEVICE_TO_DEVICE : ACL_MEMCPY_HOST_TO_DEVICE;
  return from_device ? ACL_MEMCPY_DEVICE_TO_HOST : ACL_MEMCPY_HOST_TO_HOST;
}

// All copies, checked; failIndex gets the one that was refused.
Result<std::vector<Copy>> check_batch(const char* function, const Batch& batch, size_t* failIndex) {
  MOEYARD_TRY(check_arrays(function, batch, failIndex));
  *failIndex = SIZE_MAX;
  std::vector<Copy> copies;
  size_t attribute = 0;
  for (size_t i = 0; i < batch.copies; ++i) {
    if (attribute + 1 < batch.attribute_count && batch.attribute_begins[attribute + 1] == i) ++attribute;
    const Copy copy{batch.dsts[i], batch.rooms[i], batch.srcs[i], batch.sizes[i],
                    kind_of(batch.attributes[attribute])};
    if (Status status = check_copy(function, copy); !status.ok()) {
      *failIndex = i;
      return status;
    }
    copies.push_back(copy);
  }
  return copies;
}

}  // namespace

aclError aclrtMemcpyBatch(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes, size_t numBatches,
                          aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes, size_t numAttrs,
                          size_t* failIndex) {
  return acl_call(__func__, [&](const char* function) -> Status {
    const Batch batch{dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs};
    const std::vector<Copy> copies = MOEYARD_TRY(check_batch(function, batch, failIndex));
    MOEYARD_TRY(current_context(function));
    for (const Copy& copy : copies) copy.run();
    return {};
  });
}

aclError aclrtMemcpyBatchAsync(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes, size_t numBatches,
                               aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes, size_t numAttrs,
                               size_t* failIndex, aclrtStream stream) {
  return acl_call(__func__, [&](const char* function) -> Status {
    const Batch batch{dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs};
    std::vector<Copy> copies = MOEYARD_TRY(check_batch(function, batch, failIndex));
    const uint64_t bytes = std::accumulate(copies.begin(), copies.end(), UINT64_C(0),
                                           [](uint64_t sum, const Copy& copy) { return sum + copy.count; });
    return queue_work(function, stream, bytes, [copies = std::move(copies)] {
      for (const Copy& copy : copies) copy.run();
    });
  });
}
