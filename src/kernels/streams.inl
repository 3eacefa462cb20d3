// Moeyard. SPDX-License-Identifier: Apache-2.0
// Copies of rows past the caches, for data that is larger than they are. Included in a target's namespace by
// kernels that write rows. Whoever streams calls hwy::FlushStream() before another thread may look.

// Write-combining buffers hold a line each: whole lines leave without being read first.
inline constexpr std::int64_t kLineBytes = 64;
// Below that a row's ragged ends cost more than its lines win.
inline constexpr std::int64_t kLeastStreamedBytes = 256;

HWY_INLINE void stream_row(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes < kLeastStreamedBytes) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return;
  }
  const hn::ScalableTag<std::uint8_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t align = lanes > kLineBytes ? lanes : kLineBytes;
  const auto misplaced =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % static_cast<std::uintptr_t>(align));
  const std::int64_t head = misplaced == 0 ? 0 : align - misplaced;
  std::memcpy(to, from, static_cast<std::size_t>(head));
  std::int64_t i = head;
  for (; i + align <= bytes; i += align)
    for (std::int64_t j = 0; j < align; j += lanes)
      hn::Stream(hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(from) + i + j), d,
                 reinterpret_cast<std::uint8_t*>(to) + i + j);
  std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
}

HWY_INLINE void copy_row(std::byte* to, const std::byte* from, std::int64_t bytes, bool streaming) {
  if (streaming)
    stream_row(to, from, bytes);
  else
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
}
