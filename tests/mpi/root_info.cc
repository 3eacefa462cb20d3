// Moeyard. SPDX-License-Identifier: Apache-2.0
// Ranks that mpirun starts, as CANN's documents show them: rank 0 makes a root info, MPI_Bcast takes it to the others.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"

namespace {

int problems = 0;

void check(int code, const char* what) {
  if (code == 0) return;
  ++problems;
  std::fprintf(stderr, "%s failed with %d: %s\n", what, code, aclGetRecentErrMsg());
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check(aclInit(nullptr), "aclInit");
  check(aclrtSetDevice(rank), "aclrtSetDevice");

  HcclRootInfo info{};
  if (rank == 0) check(HcclGetRootInfo(&info), "HcclGetRootInfo");
  MPI_Bcast(&info, HCCL_ROOT_INFO_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
  HcclComm comm = nullptr;
  check(
      HcclCommInitRootInfo(static_cast<std::uint32_t>(size), &info, static_cast<std::uint32_t>(rank), &comm),
      "HcclCommInitRootInfo");

  // Block k of rank r's buffer goes to rank k: r * 100 + k.
  aclrtStream stream = nullptr;
  check(aclrtCreateStream(&stream), "aclrtCreateStream");
  std::vector<std::int32_t> values(static_cast<std::size_t>(size));
  for (int k = 0; k < size; ++k) values[static_cast<std::size_t>(k)] = rank * 100 + k;
  const std::size_t bytes = values.size() * sizeof values[0];
  void *in = nullptr, *out = nullptr;
  check(aclrtMalloc(&in, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  check(aclrtMalloc(&out, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  check(aclrtMemcpy(in, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
  check(HcclAlltoAll(in, 1, HCCL_DATA_TYPE_INT32, out, 1, HCCL_DATA_TYPE_INT32, comm, stream),
        "HcclAlltoAll");
  check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
  check(aclrtMemcpy(values.data(), bytes, out, bytes, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
  for (int k = 0; k < size; ++k)
    if (values[static_cast<std::size_t>(k)] != k * 100 + rank) {
      ++problems;
      std::fprintf(stderr, "rank %d has %d from rank %d\n", rank, values[static_cast<std::size_t>(k)], k);
    }

  check(aclrtFree(in), "aclrtFree");
  check(aclrtFree(out), "aclrtFree");
  check(aclrtDestroyStream(stream), "aclrtDestroyStream");
  check(HcclCommDestroy(comm), "HcclCommDestroy");
  check(aclFinalize(), "aclFinalize");
  int all = 0;
  MPI_Allreduce(&problems, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  if (rank == 0) std::puts(all == 0 ? "PASS" : "FAIL");
  return all == 0 ? 0 : 1;
}
