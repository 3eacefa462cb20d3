// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "acl/acl_base.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>

#include "base/dtype.h"
#include "base/log.h"
#include "base/numbers.h"
#include "runtime/acl_call.h"

using namespace moeyard;
using namespace moeyard::runtime;

struct aclDataBuffer {
  void* data;
  std::size_t size;
};

aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
  aclDataBuffer* buffer = nullptr;
  acl_call(__func__, [&](const char*) -> Status {
    buffer = new aclDataBuffer{data, size};
    return {};
  });
  return buffer;
}

aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "dataBuffer", dataBuffer));
    delete dataBuffer;
    return {};
  });
}

aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data, size_t size) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "dataBuffer", dataBuffer));
    *dataBuffer = {data, size};
    return {};
  });
}

void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer) {
  return dataBuffer == nullptr ? nullptr : dataBuffer->data;
}

uint32_t aclGetDataBufferSize(const aclDataBuffer* dataBuffer) {
  return static_cast<uint32_t>(aclGetDataBufferSizeV2(dataBuffer));
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer) {
  return dataBuffer == nullptr ? 0 : dataBuffer->size;
}

size_t aclDataTypeSize(aclDataType dataType) {
  const DtypeInfo* info = find_dtype(dataType);
  return info == nullptr ? 0 : static_cast<size_t>((info->bits + 7) / 8);
}

float aclFloat16ToFloat(aclFloat16 value) {
  const int exponent = value >> 10 & 0x1F;
  if (exponent != 0x1F) return to_float(Fp16{value});
  // CANN's rule has no infinities and no NaN: the highest exponent is one like the others.
  const float magnitude = 65536.0f * (1.0f + static_cast<float>(value & 0x3FF) / 1024.0f);
  return (value & 0x8000) != 0 ? -magnitude : magnitude;
}

aclFloat16 aclFloatToFloat16(float value) {
  constexpr std::uint16_t kInfinity = 0x7C00, kLargest = 0x7BFF, kMagnitude = 0x7FFF;
  const std::uint16_t bits = to_fp16(value).bits;
  if ((bits & kMagnitude) < kInfinity) return bits;
  return static_cast<aclFloat16>(kLargest | (std::signbit(value) ? 0x8000 : 0));
}

namespace {
std::string print(const char* format, std::va_list arguments) {
  std::va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  std::string text(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, arguments);
  return text;
}
}  // namespace

void aclAppLog(aclLogLevel logLevel, const char* func, const char* file, uint32_t line, const char* fmt,
               ...) {
  constexpr LogLevel kLevels[] = {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error};
  if (fmt == nullptr || logLevel < ACL_DEBUG || logLevel > ACL_ERROR || !log_enabled(kLevels[logLevel]))
    return;
  std::va_list arguments;
  va_start(arguments, fmt);
  acl_call(__func__, [&](const char*) -> Status {
    const std::string text = print(fmt, arguments);
    log_at(kLevels[logLevel], "{} ({}:{}): {}", func == nullptr ? "" : func, file == nullptr ? "" : file,
           line, text);
    return {};
  });
  va_end(arguments);
}

aclError aclGetCannAttributeList(const aclCannAttr** cannAttrList, size_t* num) {
  return acl_call(__func__, [&](const char* function) -> Status {
    static constexpr aclCannAttr kAttributes[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16,
                                                  ACL_CANN_ATTR_JIT_COMPILE};
    MOEYARD_TRY(require(function, "cannAttrList", cannAttrList));
    MOEYARD_TRY(require(function, "num", num));
    *cannAttrList = kAttributes;
    *num = std::size(kAttributes);
    return {};
  });
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value) {
  return acl_call(__func__, [&](const char* function) -> Status {
    MOEYARD_TRY(require(function, "value", value));
    switch (cannAttr) {
      case ACL_CANN_ATTR_INF_NAN:
      case ACL_CANN_ATTR_BF16:
        *value = 1;
        return {};
      case ACL_CANN_ATTR_JIT_COMPILE:
        *value = 0;
        return {};
      case ACL_CANN_ATTR_UNDEFINED:
        break;
    }
    return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
                "{}: cannAttr is {} but must be a value of aclCannAttr other than UNDEFINED", function,
                static_cast<int>(cannAttr));
  });
}
