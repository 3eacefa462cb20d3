// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <memory>

#include "runtime/acl_call.h"
#include "runtime/context.h"
#include "runtime/streams.h"

using namespace moeyard;
using namespace moeyard::runtime;

namespace {

Status bad_attribute(const char* function, int attribute) {
  return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
              "{}: attribute {} does not exist; use a value of the enumeration", function, attribute);
}

Status set_attribute(const char* function, Stream& stream, aclrtStreamAttr attribute,
                     const aclrtStreamAttrValue& value) {
  switch (attribute) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      return stream.set_failure_mode(function, value.failureMode);
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      stream.overflow_switch = value.overflowSwitch;
      return {};
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      stream.user_tag = value.userCustomTag;
      return {};
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      stream.cache_op_info = value.cacheOpInfoSwitch;
      return {};
    case ACL_STREAM_ATTR_PRIORITY:
      return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, TextCode::runtime_parameter,
                  "{}: the priority of a stream is chosen when it is created", function);
  }
  return bad_attribute(function, attribute);
}

Status get_attribute(const char* function, const Stream& stream, aclrtStreamAttr attribute,
                     aclrtStreamAttrValue* value) {
  switch (attribute) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      value->failureMode = stream.failure_mode();
      return {};
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      value->overflowSwitch = stream.overflow_switch;
      return {};
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      value->userCustomTag = stream.user_tag;
      return {};
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      value->cacheOpInfoSwitch = stream.cache_op_info;
      return {};
    case ACL_STREAM_ATTR_PRIORITY:
      value->priority = stream.options().priority;
      return {};
  }
  return bad_attribute(function, attribute);
}

struct Field {
  void* at;
  std::size_t bytes;
};

Result<Field> config_field(const char* function, aclrtStreamConfigHandle& handle,
                           aclrtStreamConfigAttr attribute) {
  switch (attribute) {
    case ACL_RT_STREAM_WORK_ADDR_PTR:
      return Field{&handle.workptr, sizeof handle.workptr};
    case ACL_RT_STREAM_WORK_SIZE:
      return Field{&handle.workSize, sizeof handle.workSize};
    case ACL_RT_STREAM_FLAG:
      return Field{&handle.flag, sizeof handle.flag};
    case ACL_RT_STREAM_PRIORITY:
      return Field{&handle.priority, sizeof handle.priority};
  }
  return bad_attribute(function, attribute);
}

}  // namespace

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "value", value));
    return set_attribute(function, *MOEYARD_TRY(find_stream(stream, function)), stmAttrType, *value);
  });
}

aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "value", value));
    return get_attribute(function, *MOEYARD_TRY(find_stream(stream, function)), stmAttrType, value);
  });
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  return acl_call(__func__, [&](const char* function) -> Status {
    return MOEYARD_TRY(find_stream(stream, function))->set_failure_mode(function, mode);
  });
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(find_stream(stream, function))->overflow_switch = flag;
    return {};
  });
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "flag", flag));
    *flag = MOEYARD_TRY(find_stream(stream, function))->overflow_switch;
    return {};
  });
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "streamId", streamId));
    *streamId = MOEYARD_TRY(find_stream(stream, function))->id();
    return {};
  });
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "priority", priority));
    *priority = MOEYARD_TRY(find_stream(stream, function))->options().priority;
    return {};
  });
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "flags", flags));
    *flags = MOEYARD_TRY(find_stream(stream, function))->options().flags;
    return {};
  });
}

aclrtStreamConfigHandle* aclrtCreateStreamConfigHandle(void) {
  aclrtStreamConfigHandle* handle = nullptr;
  acl_call(__func__, [&](const char*) -> Status {
    handle = new aclrtStreamConfigHandle{};
    return {};
  });
  return handle;
}

aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle* handle) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "handle", handle));
    delete handle;
    return {};
  });
}

aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle* handle, aclrtStreamConfigAttr attr,
                                 const void* attrValue, size_t valueSize) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "handle", handle));
    MOEYARD_TRY(require(function, "attrValue", attrValue));
    const Field field = MOEYARD_TRY(config_field(function, *handle, attr));
    if (valueSize != field.bytes)
      return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
                  "{}: valueSize is {} but must be {}, the size of this attribute", function, valueSize,
                  field.bytes);
    std::memcpy(field.at, attrValue, valueSize);
    return {};
  });
}
