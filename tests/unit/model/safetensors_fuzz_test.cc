// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Damaged files: whatever happens to the bytes, the reader answers with tensors that lie inside the file or
// with a sentence. MOEYARD_FUZZ_SEED replays a run, MOEYARD_FUZZ_COUNT makes it longer.
#include <cstdlib>
#include <random>

#include "model/safetensors.h"
#include "support/model_files.h"

namespace moeyard::model {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string seed_file() {
  test::TensorWriter writer;
  writer.add_pattern("model.layers.0.mlp.gate.weight", {4, 8});
  writer.add_pattern("model.layers.0.mlp.experts.0.gate_proj.weight", {2, 8}, "BF16");
  writer.add_pattern("none", {0, 3});
  return writer.bytes();
}

// Flips, overwrites, inserts, removes or repeats some bytes, most of the time in the header.
void damage(std::string& bytes, std::mt19937_64& random) {
  static const std::string kTokens[] = {"[",
                                        "]",
                                        "{",
                                        "}",
                                        ",",
                                        ":",
                                        "\"",
                                        "-",
                                        "0",
                                        "9",
                                        "1e9",
                                        "null",
                                        "\\u0000",
                                        "18446744073709551615",
                                        "9223372036854775807",
                                        "\"dtype\"",
                                        "\"F32\""};
  const std::size_t range = random() % 4 != 0 ? std::min<std::size_t>(bytes.size(), 300) : bytes.size();
  const std::size_t at = range == 0 ? 0 : random() % range;
  const std::string& token = kTokens[random() % std::size(kTokens)];
  switch (random() % 6) {
    case 0:
      if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      break;
    case 1:
      bytes.replace(at, std::min(token.size(), bytes.size() - at), token);
      break;
    case 2:
      bytes.insert(at, token);
      break;
    case 3:
      bytes.erase(at, random() % 16);
      break;
    case 4:
      bytes.insert(at, bytes.substr(at, random() % 64));
      break;
    default:
      bytes.resize(random() % (bytes.size() + 1));
  }
}

// Half of the damaged files get a length that fits the header again, so that damage behind it is reached.
void repair_length(std::string& bytes, std::mt19937_64& random) {
  const std::size_t end = bytes.rfind('}');
  if (random() % 2 == 0 || end == std::string::npos || end < 8) return;
  const std::uint64_t length = end + 1 - 8;
  std::memcpy(bytes.data(), &length, sizeof length);
}

TEST(SafetensorsFuzz, DamagedFilesAreReadOrRefused) {
  const std::uint64_t seed = number_from("MOEYARD_FUZZ_SEED", std::random_device{}());
  const std::uint64_t count = number_from("MOEYARD_FUZZ_COUNT", 20'000);
  SCOPED_TRACE("replay with MOEYARD_FUZZ_SEED=" + std::to_string(seed));
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  const std::string intact = seed_file();
  std::uint64_t read = 0, refused = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string bytes = intact;
    for (std::uint64_t n = random() % 4 + 1; n > 0; --n) damage(bytes, random);
    repair_length(bytes, random);
    const auto file = std::as_bytes(std::span(bytes));
    const auto tensors = parse_safetensors(file, "damaged");
    ++(tensors ? read : refused);
    if (!tensors) {
      ASSERT_EQ(tensors.error().code(), 2);
      ASSERT_EQ(tensors.error().message().back(), '.');
      continue;
    }
    for (const auto& [name, tensor] : *tensors) {
      ASSERT_GE(tensor.bytes.data(), file.data());
      ASSERT_LE(tensor.bytes.data() + tensor.bytes.size(), file.data() + file.size());
      std::int64_t elements = 1;
      for (const std::int64_t dimension : tensor.shape) elements *= dimension;
      ASSERT_EQ(elements, tensor.elements());
    }
  }
  EXPECT_GT(read, 0u);  // else the damage is too much to test anything but the first checks
  EXPECT_GT(refused, count / 10);
}

}  // namespace
}  // namespace moeyard::model
