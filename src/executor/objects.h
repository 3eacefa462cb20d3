// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "aclnn/acl_meta.h"
#include "base/tensor_view.h"

// The objects behind the opaque handles of aclnn/acl_meta.h.

namespace moeyard {
inline constexpr int kMostDims = 25;  // what an aclTensor can store; operators accept kMaxRank of them
}

struct aclTensor {
  std::int64_t view_dims[moeyard::kMostDims];
  std::int64_t strides[moeyard::kMostDims];
  std::int64_t storage_dims[moeyard::kMostDims];
  std::int32_t view_rank;
  std::int32_t storage_rank;
  std::int64_t offset;
  void* data;
  aclDataType dtype;
  aclFormat format;
};

struct aclScalar {
  alignas(16) std::byte value[16];
  aclDataType dtype;
};

struct aclIntArray {
  std::vector<std::int64_t> values;
};
struct aclFloatArray {
  std::vector<float> values;
};
struct aclBoolArray {
  std::vector<unsigned char> values;
};
struct aclTensorList {  // owns its tensors; entries may be null
  std::vector<aclTensor*> tensors;
};
struct aclScalarList {  // owns its scalars
  std::vector<aclScalar*> scalars;
};

namespace moeyard {

// What an operator's argument struct holds in place of a handle. Null handles give absent views and empty
// values.
TensorView view(const aclTensor* tensor);
ScalarView view(const aclScalar* scalar);
TensorListView view(const aclTensorList* list);
IntArrayView view(const aclIntArray* array);
inline std::string_view text(const char* characters) {
  return characters == nullptr ? std::string_view() : characters;
}

// Live handles, so that using or destroying one twice is recognised instead of crashing.
void remember_handle(const void* handle);
bool forget_handle(const void* handle);  // whether it was live
bool is_live_handle(const void* handle);

}  // namespace moeyard
