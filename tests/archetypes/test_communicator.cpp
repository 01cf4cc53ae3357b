// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The concept `communicator`: what it asks for is enough, and each part of it is asked for.

#include "archetypes/suite.hpp"
#include "support/archetype_communicator.hpp"

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/any_communicator.hpp>
#include <oktopk/comm/counted.hpp>

using namespace oktopk_tests;
using archetype = archetype_communicator;

namespace {

static_assert(oktopk::communicator<archetype>);
static_assert(!std::copyable<archetype> && !std::default_initializable<archetype> &&
              !std::copy_constructible<archetype::request>);
static_assert(oktopk::communicator<oktopk::counted<archetype>>, "decorators ask for no more");

// As a member type, and after one that says while it runs what the archetype's type says.
template <class Owner>
concept has_a_communicator = oktopk::communicator<typename Owner::communicator_type>;
template <class C>
struct owner {
  using communicator_type = C;
};
static_assert(has_a_communicator<owner<oktopk::any_communicator>> && has_a_communicator<owner<archetype>>);

// One defect each: a name in a derived class hides the base's.
template <class C>
inline constexpr bool only_unranked = !oktopk::detail::ranked<C> && oktopk::detail::sends_and_receives<C> &&
                                      oktopk::detail::waits<C> && !oktopk::communicator<C>;
template <class C>
inline constexpr bool only_mute =
    oktopk::detail::ranked<C> && !oktopk::detail::sends_and_receives<C> && !oktopk::communicator<C>;
template <class C>
inline constexpr bool only_impatient = oktopk::detail::ranked<C> && oktopk::detail::sends_and_receives<C> &&
                                       !oktopk::detail::waits<C> && !oktopk::communicator<C>;
template <class C>
inline constexpr bool only_persistent = oktopk::detail::waits<C> && !oktopk::detail::cancels<C> &&
                                        oktopk::detail::reduces_everywhere<C> && !oktopk::communicator<C>;
template <class C>
inline constexpr bool only_irreducible =
    oktopk::detail::waits<C> && !oktopk::detail::reduces_everywhere<C> && !oktopk::communicator<C>;
template <class C>
inline constexpr bool only_unreaching =
    oktopk::detail::waits<C> && !oktopk::detail::knows_its_reach<C> && !oktopk::communicator<C>;

DEFECT(only_unranked, without_rank, archetype, int rank() const = delete);
DEFECT(only_unranked, rank_is_wide, archetype, long rank() const);
DEFECT(only_unranked, without_size, archetype, int size() const = delete);
DEFECT(only_unranked, size_changes, archetype, int size());

struct without_request : archetype {
  using request = void;
};
DEFECT(only_mute, without_isend, archetype, void isend() = delete);
DEFECT(only_mute, isend_tells_nothing, archetype, void isend(std::span<std::byte const>, int, oktopk::phase));
DEFECT(only_mute, isend_wants_to_write, archetype, request isend(std::span<std::byte>, int, oktopk::phase));
DEFECT(only_mute, without_irecv, archetype, void irecv() = delete);
DEFECT(only_mute, irecv_without_phase, archetype, request irecv(std::span<std::byte>, int));
static_assert(oktopk::detail::ranked<without_request> && !oktopk::communicator<without_request>);

DEFECT(only_impatient, without_wait_all, archetype, void wait_all() = delete);
DEFECT(only_impatient, wait_all_tells_too_much, archetype, int wait_all(std::span<request>));

DEFECT(only_persistent, without_cancel, archetype, void cancel() = delete);
DEFECT(only_persistent, cancel_may_throw, archetype, void cancel(std::span<request>));
DEFECT(only_persistent, cancel_of_one, archetype, void cancel(request&) noexcept);
DEFECT(only_persistent, cancel_tells_too_much, archetype, int cancel(std::span<request>) noexcept);

DEFECT(only_irreducible, without_allreduce, archetype, void allreduce() = delete);
DEFECT(only_irreducible, allreduces_float_only, archetype,
       void allreduce(std::span<float>, oktopk::reduction, oktopk::phase));
DEFECT(only_unreaching, without_can_access, archetype, void can_access() = delete);
DEFECT(only_unreaching, can_access_tells_a_number, archetype, template <class MemorySpace> int can_access() const);
struct uncopyable : archetype {
  uncopyable(uncopyable const&) = delete;
};
static_assert(oktopk::detail::waits<uncopyable> && !oktopk::communicator<uncopyable>);

// What the base has may be hidden by the same, and by nothing else.
template <class C>
inline constexpr bool only_of_its_own = oktopk::detail::waits<C> && oktopk::detail::reduces_everywhere<C> &&
                                        !oktopk::detail::derives_from_communicator_base<C> &&
                                        !oktopk::control_communicator<C> && !oktopk::bulk_communicator<C>;
template <class C>
inline constexpr bool only_otherwise =
    oktopk::detail::waits<C> && oktopk::detail::derives_from_communicator_base<C> &&
    !oktopk::detail::has_optional_members<C> && !oktopk::control_communicator<C> && !oktopk::bulk_communicator<C>;
struct without_base : private archetype {
  using archetype::abort, archetype::allreduce, archetype::begin_operation, archetype::bulk_request,
      archetype::can_access, archetype::cancel, archetype::irecv, archetype::isend, archetype::number_object,
      archetype::ordered_by_instance, archetype::rank, archetype::request, archetype::set_time_limits, archetype::size,
      archetype::start, archetype::takes_other_threads, archetype::tells_sizes, archetype::time_limits,
      archetype::untagged_objects, archetype::wait_all;
};
static_assert(only_of_its_own<without_base>);
DEFECT(only_otherwise, operation_without_number, archetype, void begin_operation(std::string_view));
DEFECT(only_otherwise, number_is_narrow, archetype, int number_object());
DEFECT(only_otherwise, count_by_value, archetype, std::int64_t untagged_objects() const);
DEFECT(only_otherwise, takes_many_threads, archetype, int takes_other_threads() const);
DEFECT(only_otherwise, abort_may_throw, archetype, void abort(oktopk::error const&));
DEFECT(only_otherwise, one_time_limit, archetype, std::chrono::nanoseconds time_limits() const);
DEFECT(only_otherwise, sets_one_time_limit, archetype, void set_time_limits(std::chrono::nanoseconds));

// Requests.
using good_request = archetype::request;
static_assert(oktopk::detail::message_request<good_request>);
struct request_without_default : good_request {
  explicit request_without_default(int);
};
struct request_that_stays : good_request {
  request_that_stays() = default;
  request_that_stays(request_that_stays&&) = delete;
};
template <class T>
inline constexpr bool no_message_request = !oktopk::detail::message_request<T>;
DEFECT(no_message_request, request_without_active, good_request, bool active() const = delete);
static_assert(!oktopk::detail::message_request<request_without_default> &&
              !oktopk::detail::message_request<request_that_stays>);

// Bulk data.
template <class C>
inline constexpr bool only_control = oktopk::control_communicator<C> && !oktopk::bulk_communicator<C>;
DEFECT(only_control, without_start, archetype, void start() = delete);
DEFECT(only_control, start_tells_too_much, archetype,
       template <class E> bool start(E const&, std::span<oktopk::bulk_message const>, std::span<request>));
DEFECT(only_control, without_bulk_request, archetype, using bulk_request = void);
struct bulk_request_of_another_kind : archetype {
  struct bulk_request {
    bool active() const;
  };
};
DEFECT(only_control, tells_sizes_as_a_constant, archetype, [[maybe_unused]] static constexpr bool tells_sizes = true);
DEFECT(only_control, without_order, archetype, void ordered_by_instance() = delete);
struct claims_to_tell_sizes : archetype {
  static constexpr bool tells_sizes() { return true; }
  struct bulk_request {
    bool active() const;
    int bytes() const;
  };
  template <class E>
  void start(E const&, std::span<oktopk::bulk_message const>, std::span<bulk_request>);
  void wait_all(std::span<request>);
  void wait_all(std::span<bulk_request>);
  void cancel(std::span<request>) noexcept;
  void cancel(std::span<bulk_request>) noexcept;
};
struct tells_no_sizes : claims_to_tell_sizes {
  static constexpr bool tells_sizes() { return false; }
};
static_assert(only_control<bulk_request_of_another_kind>);
static_assert(only_control<claims_to_tell_sizes>);
static_assert(oktopk::communicator<tells_no_sizes>);

using accumulator = Kokkos::View<float*, host_memory>;
using sparse = oktopk::ok_topk<host_execution, archetype>;
using whole = oktopk::dense<host_execution, archetype>;

} // namespace

// The algorithms ask for no more. That they do well over such a communicator is tried in tests/algorithm, by text.
template class oktopk::ok_topk<host_execution, archetype>;
template sparse::update_type const& sparse::operator()(accumulator const&);
template class oktopk::dense<host_execution, archetype>;
template whole::update_type const& whole::operator()(accumulator const&);
