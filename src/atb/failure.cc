// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/failure.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "moeyard/atb_backend.h"

namespace moeyard::atb_layer {
namespace {

constexpr std::size_t kLongest = 2048;  // characters of a message
constexpr char kPrefix[] = "[EZ1001] ";

}  // namespace

atb::Status fail(atb::ErrorType code, const char* format, ...) {
  char text[kLongest];
  std::copy(std::begin(kPrefix), std::end(kPrefix), text);
  constexpr std::size_t kUsed = sizeof kPrefix - 1;
  va_list arguments;
  va_start(arguments, format);
  const int written = std::vsnprintf(text + kUsed, kLongest - kUsed - 1, format, arguments);
  va_end(arguments);
  const std::size_t end =
      kUsed + std::min<std::size_t>(static_cast<std::size_t>(std::max(written, 0)), kLongest - kUsed - 2);
  text[end] = '.';
  text[end + 1] = '\0';
  moeyardAtbFail(code, text);
  return code;
}

void warn(const char* format, ...) {
  char text[kLongest];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, kLongest, format, arguments);
  va_end(arguments);
  moeyardAtbWarn(text);
}

atb::Status caught(atb::ErrorType code, const char* name, const char* function) {
  try {
    throw;
  } catch (const std::exception& error) {
    return fail(code, "%s: %s ended with an exception: %s", name, function, error.what());
  } catch (...) {
    return fail(code, "%s: %s ended with an exception of unknown type", name, function);
  }
}

std::string text_of(const atb::Dims& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.dimNum && i < atb::MAX_DIM; ++i) {
    if (i > 0) text += ',';
    text += std::to_string(shape.dims[i]);
  }
  if (shape.dimNum > atb::MAX_DIM) text += ",...";
  text += ']';
  return text;
}

std::string text_of(const atb::TensorDesc& desc) {
  std::string text = moeyardAtbNameOf(desc.dtype);
  text += text_of(desc.shape);
  return text;
}

}  // namespace moeyard::atb_layer
