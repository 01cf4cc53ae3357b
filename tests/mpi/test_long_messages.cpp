// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Messages beyond what an int counts: how they are described, with short ones; and, on two ranks, real ones.

#include "support/caught.hpp"
#include "support/messages.hpp"
#include "support/mpi_ranks.hpp"
#include "support/seeded.hpp"

#include <oktopk/dense/recursive_doubling.hpp>
#include <oktopk/mpi.hpp>

#include <sys/mman.h>

#include <array>
#include <fstream>
#include <iostream>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::mpi_communicator;
using oktopk::phase;
using oktopk::detail::mpi_bytes;

namespace {

using request = mpi_communicator::request;

// MPI 4.1 deprecates the names of MPI 3.
#if MPI_VERSION >= 4
auto* const type_size = MPI_Type_size_c;
auto* const type_get_true_extent = MPI_Type_get_true_extent_c;
auto* const get_elements = MPI_Get_elements_c;
#else
auto* const type_size = MPI_Type_size_x;
auto* const type_get_true_extent = MPI_Type_get_true_extent_x;
auto* const get_elements = MPI_Get_elements_x;
#endif

constexpr std::size_t beyond_int = std::size_t(std::numeric_limits<int>::max()) + 1;

// Zeros that take no memory before they are written.
class untouched {
public:
  explicit untouched(std::size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    REQUIRE(data_ != MAP_FAILED);
  }
  ~untouched() { munmap(data_, bytes_); }
  untouched(untouched const&) = delete;
  untouched& operator=(untouched const&) = delete;

  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(data_), bytes_}; }

private:
  std::size_t bytes_;
  void* data_;
};

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    made[i] = static_cast<std::byte>(i * 7 + i / 256 + 1);
  }
  return made;
}

// Whether there are two ranks, on machines with so much memory free; ctest takes these words for a test that was skipped.
bool has_memory(double gibibytes) {
  std::ifstream file("/proc/meminfo");
  double found = 0; // kilobytes
  for (std::string word; file >> word;) {
    if (word == "MemAvailable:") {
      file >> found;
    }
  }
  found /= 1 << 20;
  MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  if (found < gibibytes && world_rank() == 0) {
    std::cerr << "skipped: " << gibibytes << " GiB of memory are needed, " << found << " are free\n";
  }
  return found >= gibibytes && world_size() == 2;
}

} // namespace

TEST_CASE("any number of bytes has a count and a type, bytes themselves where these can be counted") {
  for (std::size_t const largest : {1U, 3U, 8U, 1000U}) {
    for (std::size_t const bytes : {0U, 1U, 2U, 3U, 7U, 8U, 9U, 16U, 999U, 1000U, 1001U, 2000U, 2999U}) {
      mpi_bytes const made(bytes, largest);
      MPI_Count size = -1;
      type_size(made.type(), &size);
      CHECK(static_cast<std::size_t>(made.count() * size) == bytes);
      CHECK((made.type() == MPI_BYTE) == (bytes <= largest));
      MPI_Count least = -1;
      MPI_Count extent = -1;
      type_get_true_extent(made.type(), &least, &extent);
      CHECK(least == 0);
      CHECK((made.type() == MPI_BYTE || static_cast<std::size_t>(extent) == bytes)); // without gaps
    }
  }
}

TEST_CASE("the bytes of a real long message are counted, none too many") {
  for (std::size_t const bytes : {beyond_int - 1, beyond_int, beyond_int + 1, 2 * beyond_int - 2, 2 * beyond_int - 1,
                                  5 * beyond_int + 12345, std::size_t(1) << 45}) {
    mpi_bytes const made(bytes);
    MPI_Count size = -1;
    type_size(made.type(), &size);
    CHECK(static_cast<std::size_t>(made.count() * size) == bytes);
  }
  CHECK(outcome_of([] { mpi_bytes(std::size_t(1) << 63); }).code == fault::communication);
}

TEST_CASE_ON_ALL_RANKS("messages match whatever either side made of its bytes, and say how many have arrived") {
  auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
  for (std::size_t const bytes : {0U, 1U, 7U, 8U, 100U, 100000U}) {
    for (std::size_t const more : {0U, 1U, 13U, 5000U}) {
      for (std::size_t const largest_sent : {3U, 8U, 1U << 30}) {
        for (std::size_t const largest_received : {3U, 8U, 1U << 30}) {
          auto const sent = pattern(bytes);
          std::vector<std::byte> space(bytes + more, std::byte(0));
          std::array<MPI_Request, 2> both{};
          {
            mpi_bytes const in(space.size(), largest_received);
            mpi_bytes const out(sent.size(), largest_sent);
            MPI_Irecv(space.data(), in.count(), in.type(), previous_rank(), 3, comm.get(), &both[0]);
            MPI_Isend(sent.data(), out.count(), out.type(), next_rank(), 3, comm.get(), &both[1]);
          }
          std::array<MPI_Status, 2> statuses{};
          MPI_Waitall(2, both.data(), statuses.data());
          MPI_Count arrived = -1;
          get_elements(&statuses[0], MPI_BYTE, &arrived);
          space.resize(static_cast<std::size_t>(arrived));
          REQUIRE(space == sent);
        }
      }
    }
  }
}

TEST_CASE_ON_ALL_RANKS("a receive may offer more room than an int counts") {
  auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
  untouched const huge(beyond_int + 5);
  int const number = 42;
  std::array<request, 2> both = {comm.irecv(huge.bytes(), previous_rank(), phase::reduce),
                                 comm.isend(bytes_of(number), next_rank(), phase::reduce)};
  comm.wait_all(both);
  CHECK(both[0].bytes() == sizeof(int));
  CHECK(*reinterpret_cast<int*>(huge.bytes().data()) == 42);
}

TEST_CASE("a message of more than 2 GiB arrives whole, as one", "[.long]") {
  if (!has_memory(5)) {
    return;
  }
  on_all_ranks([] {
    auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
    std::size_t const bytes = beyond_int + 4097;
    untouched const memory(bytes + 100);
    std::span<std::byte> const message = memory.bytes().first(bytes);
    std::array<std::size_t, 6> const places = {0, 1, beyond_int - 2, beyond_int - 1, beyond_int, bytes - 1};
    if (world_rank() == 0) {
      for (std::size_t const place : places) {
        message[place] = static_cast<std::byte>(place % 251 + 1);
      }
    }
    request one =
        world_rank() == 0 ? comm.isend(message, 1, phase::reduce) : comm.irecv(memory.bytes(), 0, phase::reduce);
    comm.wait_all(std::span(&one, 1));
    if (world_rank() == 1) {
      CHECK(one.bytes() == bytes);
      auto const all = memory.bytes();
      CHECK(std::count(all.begin(), all.end(), std::byte(0)) ==
            static_cast<std::ptrdiff_t>(all.size() - places.size()));
      for (std::size_t const place : places) {
        CHECK(message[place] == static_cast<std::byte>(place % 251 + 1));
      }
    }
    CHECK(pass_around(comm, world_rank(), phase::reduce) == previous_rank());
  });
}

TEST_CASE("a message of more than 2 GiB that exceeds the room for it is an error", "[.long]") {
  if (!has_memory(5)) {
    return;
  }
  errors_return_everywhere const live_on;
  on_all_ranks([] {
    auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
    untouched const memory(beyond_int + 100);
    request one;
    if (world_rank() == 0) {
      one = comm.isend(memory.bytes(), 1, phase::reduce);
      comm.wait_all(std::span(&one, 1));
    } else {
      one = comm.irecv(memory.bytes().first(beyond_int + 99), 0, phase::reduce);
      CHECK(outcome_of([&] { comm.wait_all(std::span(&one, 1)); }).code == fault::communication);
    }
  });
}

TEST_CASE("a vector of 2 GiB is reduced, and the communicator goes on", "[.long]") {
  if (!has_memory(11)) {
    return;
  }
  on_all_ranks([] {
    auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
    host_execution const exec;
    using reduction_type = oktopk::recursive_doubling<host_execution, mpi_communicator, float>;
    {
      std::int64_t const count = std::int64_t(1) << 29;
      untouched const memory(static_cast<std::size_t>(count) * sizeof(float));
      auto* const values = reinterpret_cast<float*>(memory.bytes().data());
      auto const mine = static_cast<float>(world_rank() + 1);
      values[0] = mine;
      values[count / 2] = 10 * mine;
      values[count - 1] = 100 * mine;
      reduction_type reduce;
      reduce.run(exec, comm, values, nullptr, count);
      exec.fence();
      CHECK(values[0] == 3);
      CHECK(values[1] == 0);
      CHECK(values[count / 2] == 30);
      CHECK(values[count - 1] == 300);
    }
    reduction_type reduce;
    std::vector<float> few(1000, 1.0F);
    reduce.run(exec, comm, few.data(), nullptr, 1000);
    exec.fence();
    CHECK(few == std::vector<float>(1000, 2.0F));
  });
}
