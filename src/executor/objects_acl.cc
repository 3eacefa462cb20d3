// Moeyard. SPDX-License-Identifier: Apache-2.0
// The C boundary of aclnn objects: create, destroy, read.
#include <algorithm>
#include <cstring>
#include <memory>

#include "base/boundary.h"
#include "base/log.h"
#include "executor/objects.h"

namespace moeyard {
namespace {

Status null_argument(const char* function, const char* parameter) {
  return fail(ACLNN_ERR_PARAM_NULLPTR, TextCode::operator_parameter, "{}: {} is null but is required",
              function, parameter);
}

void fill(aclTensor& tensor, const int64_t* view_dims, uint64_t view_rank, aclDataType dtype,
          const int64_t* strides, int64_t offset, aclFormat format, const int64_t* storage_dims,
          uint64_t storage_rank, void* data) {
  tensor.view_rank = static_cast<std::int32_t>(view_rank);
  tensor.storage_rank = static_cast<std::int32_t>(storage_rank);
  std::copy_n(view_dims, view_rank, tensor.view_dims);
  std::copy_n(storage_dims, storage_rank, tensor.storage_dims);
  if (strides != nullptr) {
    std::copy_n(strides, view_rank, tensor.strides);
  } else {
    std::int64_t dense = 1;
    for (auto axis = static_cast<std::int64_t>(view_rank) - 1; axis >= 0; --axis) {
      tensor.strides[axis] = dense;
      // Sizes too large to multiply are refused by the operator; the strides only have to be defined.
      if (__builtin_mul_overflow(dense, view_dims[axis], &dense)) dense = 0;
    }
  }
  tensor.offset = offset;
  tensor.data = data;
  tensor.dtype = dtype;
  tensor.format = format;
}

bool storable(const int64_t* dims, uint64_t rank) {
  return rank <= static_cast<uint64_t>(kMostDims) && (dims != nullptr || rank == 0);
}

// Every create function: null instead of an exception, and the handle is remembered.
template <class Make>
auto create(const char* function, Make&& make) noexcept -> decltype(make().release()) {
  decltype(make().release()) handle = nullptr;
  c_boundary<AclnnApi>(function, [&]() -> Status {
    auto made = make();
    if (made != nullptr) remember_handle(made.get());
    handle = made.release();
    return {};
  });
  return handle;
}

template <class Array, class Value>
Array* create_array(const char* function, const Value* value, uint64_t size) noexcept {
  return create(function, [&] {
    auto array = std::make_unique<Array>();
    if (value != nullptr) array->values.assign(value, value + size);
    return array;
  });
}

// Programs destroy members of a list, or anything, twice: harmless here.
template <class Object, class Release>
aclnnStatus destroy(const char* function, const Object* object, Release&& release) noexcept {
  return c_boundary<AclnnApi, aclnnStatus>(function, [&]() -> Status {
    if (object == nullptr) return {};
    if (!forget_handle(object)) {
      log_warning("{}: {} was destroyed before (or is no such object); nothing is done", function,
                  static_cast<const void*>(object));
      return {};
    }
    release();
    delete object;
    return {};
  });
}

template <class Object>
aclnnStatus destroy(const char* function, const Object* object) noexcept {
  return destroy(function, object, [] {});
}

aclnnStatus copy_out(const char* function, const aclTensor* tensor, const int64_t* dims, int32_t rank,
                     int64_t** out, uint64_t* out_size) noexcept {
  return c_boundary<AclnnApi, aclnnStatus>(function, [&]() -> Status {
    if (tensor == nullptr) return null_argument(function, "tensor");
    if (out == nullptr || out_size == nullptr) return null_argument(function, "an out-parameter");
    *out = new int64_t[static_cast<std::size_t>(rank)];  // the caller frees it with delete[]
    std::copy_n(dims, rank, *out);
    *out_size = static_cast<uint64_t>(rank);
    return {};
  });
}

template <class Object, class Out, class Read>
aclnnStatus read(const char* function, const Object* object, Out* out, Read&& value) noexcept {
  return c_boundary<AclnnApi, aclnnStatus>(function, [&]() -> Status {
    if (object == nullptr || out == nullptr)
      return null_argument(function, object == nullptr ? "the object" : "the out-parameter");
    *out = static_cast<Out>(value(*object));
    return {};
  });
}

}  // namespace
}  // namespace moeyard

using moeyard::create;
using moeyard::create_array;
using moeyard::destroy;

extern "C" {

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t* stride, int64_t offset, aclFormat format,
                           const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData) {
  return create("aclCreateTensor", [&] {
    if (!moeyard::storable(viewDims, viewDimsNum) || !moeyard::storable(storageDims, storageDimsNum))
      return std::unique_ptr<aclTensor>();
    auto tensor = std::make_unique<aclTensor>();
    moeyard::fill(*tensor, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
                  storageDimsNum, tensorData);
    return tensor;
  });
}

aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  return create("aclCreateScalar", [&] {
    if (value == nullptr) return std::unique_ptr<aclScalar>();
    auto scalar = std::make_unique<aclScalar>();
    scalar->dtype = dataType;
    std::memcpy(scalar->value, value, static_cast<std::size_t>(moeyard::bytes_of(dataType, 1)));
    return scalar;
  });
}

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  return create_array<aclIntArray>("aclCreateIntArray", value, size);
}
aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
  return create_array<aclFloatArray>("aclCreateFloatArray", value, size);
}
aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
  return create_array<aclBoolArray>("aclCreateBoolArray", value, size);
}

aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
  return create("aclCreateTensorList", [&] {
    auto list = std::make_unique<aclTensorList>();
    if (value != nullptr)
      for (uint64_t i = 0; i < size; ++i) list->tensors.push_back(const_cast<aclTensor*>(value[i]));
    return list;
  });
}
aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) {
  return create("aclCreateScalarList", [&] {
    auto list = std::make_unique<aclScalarList>();
    if (value != nullptr)
      for (uint64_t i = 0; i < size; ++i) list->scalars.push_back(const_cast<aclScalar*>(value[i]));
    return list;
  });
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) { return destroy("aclDestroyTensor", tensor); }
aclnnStatus aclDestroyScalar(const aclScalar* scalar) { return destroy("aclDestroyScalar", scalar); }
aclnnStatus aclDestroyIntArray(const aclIntArray* array) { return destroy("aclDestroyIntArray", array); }
aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
  return destroy("aclDestroyFloatArray", array);
}
aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) { return destroy("aclDestroyBoolArray", array); }
aclnnStatus aclDestroyTensorList(const aclTensorList* array) {
  return destroy("aclDestroyTensorList", array, [&] {
    for (const aclTensor* tensor : array->tensors) aclDestroyTensor(tensor);
  });
}
aclnnStatus aclDestroyScalarList(const aclScalarList* array) {
  return destroy("aclDestroyScalarList", array, [&] {
    for (const aclScalar* scalar : array->scalars) aclDestroyScalar(scalar);
  });
}

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum) {
  const bool given = tensor != nullptr;
  return moeyard::copy_out("aclGetViewShape", tensor, given ? tensor->view_dims : nullptr,
                           given ? tensor->view_rank : 0, viewDims, viewDimsNum);
}
aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims, uint64_t* storageDimsNum) {
  const bool given = tensor != nullptr;
  return moeyard::copy_out("aclGetStorageShape", tensor, given ? tensor->storage_dims : nullptr,
                           given ? tensor->storage_rank : 0, storageDims, storageDimsNum);
}
aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue, uint64_t* stridesNum) {
  const bool given = tensor != nullptr;
  return moeyard::copy_out("aclGetViewStrides", tensor, given ? tensor->strides : nullptr,
                           given ? tensor->view_rank : 0, stridesValue, stridesNum);
}
aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  return moeyard::read("aclGetViewOffset", tensor, offset, [](const aclTensor& t) { return t.offset; });
}
aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  return moeyard::read("aclGetFormat", tensor, format, [](const aclTensor& t) { return t.format; });
}
aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  return moeyard::read("aclGetDataType", tensor, dataType, [](const aclTensor& t) { return t.dtype; });
}
aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
  return moeyard::read("aclGetIntArraySize", array, size,
                       [](const aclIntArray& a) { return a.values.size(); });
}
aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
  return moeyard::read("aclGetFloatArraySize", array, size,
                       [](const aclFloatArray& a) { return a.values.size(); });
}
aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
  return moeyard::read("aclGetBoolArraySize", array, size,
                       [](const aclBoolArray& a) { return a.values.size(); });
}
aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList, uint64_t* size) {
  return moeyard::read("aclGetTensorListSize", tensorList, size,
                       [](const aclTensorList& l) { return l.tensors.size(); });
}
aclnnStatus aclGetScalarListSize(const aclScalarList* scalarList, uint64_t* size) {
  return moeyard::read("aclGetScalarListSize", scalarList, size,
                       [](const aclScalarList& l) { return l.scalars.size(); });
}

aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum,
                          aclDataType dataType, const int64_t* stride, int64_t offset, aclFormat format,
                          const int64_t* storageDims, uint64_t storageDimsNum, void* tensorDataAddr) {
  return moeyard::c_boundary<moeyard::AclnnApi, aclnnStatus>("aclInitTensor", [&]() -> moeyard::Status {
    if (tensor == nullptr) return moeyard::null_argument("aclInitTensor", "tensor");
    if (!moeyard::storable(viewDims, viewDimsNum) || !moeyard::storable(storageDims, storageDimsNum))
      return moeyard::fail(
          ACLNN_ERR_PARAM_INVALID, moeyard::TextCode::operator_parameter,
          "aclInitTensor: viewDims and storageDims must hold at most {} dimensions and not be null, "
          "but viewDimsNum is {} and storageDimsNum is {}",
          moeyard::kMostDims, viewDimsNum, storageDimsNum);
    moeyard::fill(*tensor, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
                  storageDimsNum, tensorDataAddr);
    return {};
  });
}

aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  return moeyard::c_boundary<moeyard::AclnnApi, aclnnStatus>("aclSetRawTensorAddr", [&]() -> moeyard::Status {
    if (tensor == nullptr) return moeyard::null_argument("aclSetRawTensorAddr", "tensor");
    tensor->data = addr;
    return {};
  });
}
aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
  return moeyard::read("aclGetRawTensorAddr", tensor, addr, [](const aclTensor& t) { return t.data; });
}

// Writes tensors only while dumping is switched on, which it never is: MOEYARD_DUMP is not supported yet (docs/limits.md).
aclnnStatus aclDumpOpTensors(const char* opType, const char* opName, aclTensor** tensors,
                             size_t inputTensorNum, size_t outputTensorNum, aclrtStream /*stream*/) {
  const char* function = "aclDumpOpTensors";
  return moeyard::c_boundary<moeyard::AclnnApi, aclnnStatus>(function, [&]() -> moeyard::Status {
    if (opType == nullptr) return moeyard::null_argument(function, "opType");
    if (opName == nullptr) return moeyard::null_argument(function, "opName");
    if (tensors == nullptr && inputTensorNum + outputTensorNum > 0)
      return moeyard::null_argument(function, "tensors");
    return {};
  });
}

}  // extern "C"
