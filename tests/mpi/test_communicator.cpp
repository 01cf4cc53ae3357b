// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The MPI adapter: messages, waiting, reductions, and that it keeps to itself. Ranks are those of mpirun, also one
// alone, who sends to herself.

#include "comm/suite.hpp"
#include "support/mpi_ranks.hpp"

#include <oktopk/comm/counted.hpp>
#include <oktopk/mpi.hpp>

#include <cstdio>
#include <cstdlib>

using namespace oktopk_tests;
using oktopk::mpi_communicator;
using oktopk::phase;

namespace {

static_assert(oktopk::communicator<mpi_communicator>);

outcome duplicated(MPI_Comm user) {
  return outcome_of([&] { auto const comm = mpi_communicator::duplicate(user); });
}

// Made before main initialises MPI, and destroyed after main has finalised it: a wrong answer is the exit status then.
struct outside_of_mpi {
  outcome const before = duplicated(MPI_COMM_WORLD);

  ~outside_of_mpi() {
    if (!duplicated(MPI_COMM_WORLD).says("MPI is finalised already")) {
      std::fputs("after MPI_Finalize: no error\n", stderr);
      std::_Exit(1);
    }
  }
} outside;

// What MPI reports where it has no more communicators, at the first one.
int refuse_to_copy(MPI_Comm, int, void*, void*, void*, int*) {
  return MPI_ERR_OTHER;
}

int count_deletions(MPI_Comm, int, void* deletions, void*) {
  *static_cast<int*>(deletions) += 1;
  return MPI_SUCCESS;
}

} // namespace

TEST_CASE("mpi keeps the contract of a communicator, counted or not") {
  check_communicator([](auto const& body) {
    on_all_ranks([&] { body(mpi_communicator::duplicate(MPI_COMM_WORLD)); });
    on_all_ranks([&] { body(oktopk::counted(mpi_communicator::duplicate(MPI_COMM_WORLD))); });
    on_all_ranks([&] {
      auto unlimited = mpi_communicator::duplicate(MPI_COMM_WORLD);
      unlimited.set_time_limit(std::chrono::nanoseconds(0));
      body(unlimited);
    });
  });
}

TEST_CASE_ON_ALL_RANKS("a duplicate has the same ranks, and leaves the user's communicator as it is") {
  auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
  CHECK(comm.rank() == world_rank());
  CHECK(comm.size() == world_size());
  CHECK(comm.can_access<Kokkos::HostSpace>());
  int relation = MPI_UNEQUAL;
  MPI_Comm_compare(MPI_COMM_WORLD, comm.get(), &relation);
  CHECK(relation == MPI_CONGRUENT);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  CHECK(handler == MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
  MPI_Comm_get_errhandler(comm.get(), &handler);
  CHECK(handler == MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&handler);
}

// topology-tool-kit/ttk#785, feelpp/feelpp#1506: a message of the program is under way on `get()` while the library sends.
TEST_CASE_ON_ALL_RANKS("messages of the program never meet the library's, whatever their tags") {
  auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
  int relation = MPI_UNEQUAL;
  MPI_Comm_compare(comm.carrier(), comm.get(), &relation);
  CHECK(relation == MPI_CONGRUENT); // another one of the same ranks
  for (int tag = 0; tag <= oktopk::phase_count; ++tag) {
    CAPTURE(tag);
    int const mine = 1000 + world_rank();
    int theirs = 0;
    MPI_Request sent = MPI_REQUEST_NULL;
    MPI_Isend(&mine, 1, MPI_INT, next_rank(), tag, comm.get(), &sent);
    MPI_Barrier(comm.get());
    for (int use = 0; use < oktopk::phase_count; ++use) {
      CHECK(pass_around(comm, world_rank(), static_cast<phase>(use)) == previous_rank());
    }
    MPI_Recv(&theirs, 1, MPI_INT, previous_rank(), tag, comm.get(), MPI_STATUS_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    CHECK(theirs == 1000 + previous_rank());
  }
}

TEST_CASE("before MPI is initialised there is an error, too") {
  CHECK(unlike(outside.before, oktopk::fault::communication, "MPI is not initialised") == "");
}

TEST_CASE_ON_ALL_RANKS("no communicator, and one of two groups, are an error and not the end of the job") {
  MPI_Comm in_none = MPI_COMM_NULL; // on rank 0
  MPI_Comm_split(MPI_COMM_WORLD, world_rank() == 0 ? MPI_UNDEFINED : 0, 0, &in_none);
  outcome const heard = duplicated(in_none);
  CHECK(unlike(heard, world_rank() == 0 ? oktopk::fault::communication : oktopk::fault::none,
               world_rank() == 0 ? "MPI_COMM_NULL is no communicator" : "") == "");
  if (in_none != MPI_COMM_NULL) {
    MPI_Comm_free(&in_none);
  }
  if (world_size() > 1) {
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm both = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank() % 2, 5, &both);
    CHECK(unlike(duplicated(both), oktopk::fault::communication, "an intercommunicator are in two groups") == "");
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
  }
}

TEST_CASE_ON_ALL_RANKS("a communicator that MPI does not duplicate is an error and not the end of the job") {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(refuse_to_copy, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
  MPI_Comm user = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &user);
  MPI_Comm_set_attr(user, key, &key);
  CHECK(unlike(duplicated(user), oktopk::fault::communication, "MPI_Comm_dup: ") == "");
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(user, &handler);
  CHECK(handler == MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&user);
  MPI_Comm_free_keyval(&key);
}

TEST_CASE_ON_ALL_RANKS("ranks are those of the communicator that was duplicated") {
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, -world_rank(), &half);
  auto comm = mpi_communicator::duplicate(half);
  MPI_Comm_free(&half); // the duplicate does not need it
  int const ranks = (world_size() + 1 - world_rank() % 2) / 2;
  CHECK(comm.size() == ranks);
  CHECK(comm.rank() == ranks - 1 - world_rank() / 2);
  CHECK(pass_around(comm, world_rank()) % 2 == world_rank() % 2);
}

TEST_CASE_ON_ALL_RANKS("the library's messages and the user's never meet, though tags and ranks are the same") {
  auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
  constexpr std::size_t phases = oktopk::phase_count;
  std::array<MPI_Request, phases> users{};
  std::array<int, phases> heard_by_user{};
  int anything = 0;
  MPI_Request any = MPI_REQUEST_NULL;
  for (std::size_t p = 0; p < phases; ++p) {
    MPI_Irecv(&heard_by_user[p], 1, MPI_INT, previous_rank(), static_cast<int>(p), MPI_COMM_WORLD, &users[p]);
  }
  MPI_Irecv(&anything, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any);
  for (std::size_t p = 0; p < phases; ++p) {
    CHECK(pass_around(comm, 100 * world_rank() + static_cast<int>(p), static_cast<phase>(p)) ==
          100 * previous_rank() + static_cast<int>(p));
  }
  int arrived = 1;
  MPI_Test(&any, &arrived, MPI_STATUS_IGNORE);
  CHECK(arrived == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  for (std::size_t p = 0; p < phases; ++p) {
    int const number = -static_cast<int>(p) - 1;
    MPI_Send(&number, 1, MPI_INT, next_rank(), static_cast<int>(p), MPI_COMM_WORLD);
  }
  MPI_Waitall(phases, users.data(), MPI_STATUSES_IGNORE);
  CHECK(heard_by_user == std::array<int, phases>{-1, -2, -3, -4, -5, -6});
  MPI_Send(&heard_by_user[0], 1, MPI_INT, next_rank(), 77, MPI_COMM_WORLD);
  MPI_Wait(&any, MPI_STATUS_IGNORE);
  CHECK(anything == -1);
}

TEST_CASE_ON_ALL_RANKS("a device's memory is within reach only where the library says so") {
  using oktopk::detail::device_family;
  using oktopk::detail::mpi_takes_memory_of;
  CHECK_FALSE(mpi_takes_memory_of(device_family::unknown));
  using oktopk::detail::names_memory_kind; // the answer of an MPI with the standard ABI
  for (auto const* kinds : {"cuda", "system,mpi,cuda", "cuda:device,system", "mpi:alloc_mem,cuda:host:device"}) {
    CHECK(names_memory_kind(kinds, "cuda"));
  }
  for (auto const* kinds :
       {"", "system,mpi", "cuda:host", "rocm,cuda:managed", "cudax", "mpi:cuda", "cuda:devices,,"}) {
    CHECK_FALSE(names_memory_kind(kinds, "cuda"));
  }
  CHECK_FALSE(names_memory_kind(oktopk::detail::mpi_memory_kinds(), "cuda")); // nobody has asked for such memory
#if defined(MPIX_CUDA_AWARE_SUPPORT) && !MPIX_CUDA_AWARE_SUPPORT
  CHECK_FALSE(mpi_takes_memory_of(device_family::cuda));
#elif defined(MPIX_GPU_SUPPORT_CUDA)
  CHECK(mpi_takes_memory_of(device_family::cuda) == (MPIX_Query_cuda_support() == 1));
#if defined(MPIX_GPU_SUPPORT_HIP) // Intel MPI has none
  CHECK(mpi_takes_memory_of(device_family::hip) == (MPIX_Query_hip_support() == 1));
#endif
#endif
}

TEST_CASE_ON_ALL_RANKS("copies share the duplicate, and the last one frees it, once") {
  int deletions = 0;
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count_deletions, &key, nullptr);
  {
    std::vector<mpi_communicator> held;
    {
      auto const first = mpi_communicator::duplicate(MPI_COMM_WORLD);
      MPI_Comm_set_attr(first.get(), key, &deletions);
      held.push_back(first);
      mpi_communicator const second = first;
      CHECK(second.get() == first.get());
    }
    CHECK(deletions == 0);
    CHECK(pass_around(held[0], world_rank()) == previous_rank());
    auto another = mpi_communicator::duplicate(held[0].get());
    CHECK(another.get() != held[0].get());
    held.push_back(another);
    held[0] = held[1];
    CHECK(deletions == 1);
    CHECK(pass_around(held[0], world_rank()) == previous_rank());
  }
  CHECK(deletions == 1);
  MPI_Comm_free_keyval(&key);
}
