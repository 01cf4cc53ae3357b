// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace oktopk {

/// What a message is for; messages of one phase between two ranks arrive in the order they were sent.
enum class phase : std::uint8_t { control, partition, threshold, reduce, balance, gather };

inline constexpr int phase_count = 6;

constexpr std::string_view name(phase p) noexcept {
  constexpr std::string_view names[phase_count] = {"control", "partition", "threshold", "reduce", "balance", "gather"};
  return names[static_cast<int>(p)];
}

/// Element-wise operation of a reduction.
enum class reduction : std::uint8_t { sum, min, max };

/// A handle of one message under way; a default-made one is inactive.
template <class R>
concept message_request = std::default_initializable<R> && std::movable<R> && requires(R const& request) {
  { request.active() } -> std::same_as<bool>;
  { request.receives() } -> std::same_as<bool>; // whether it is a receive
  { request.message_phase() } -> std::same_as<phase>;
  { request.bytes() } -> std::same_as<std::size_t>; // of a completed receive: what arrived
};

template <class C>
concept ranked = requires(C const& comm) {
  { comm.rank() } -> std::same_as<int>;
  { comm.size() } -> std::same_as<int>;
};

template <class C>
concept sends_and_receives =
    requires { typename C::request; } && message_request<typename C::request> &&
    requires(C& comm, std::span<std::byte const> out, std::span<std::byte> in, int peer, phase p) {
      { comm.isend(out, peer, p) } -> std::same_as<typename C::request>;
      { comm.irecv(in, peer, p) } -> std::same_as<typename C::request>;
    };

template <class C>
concept waits = requires(C& comm, std::span<typename C::request> requests) {
  { comm.wait_any(requests) } -> std::same_as<std::size_t>;
  { comm.wait_all(requests) } -> std::same_as<void>;
};

template <class C>
concept cancels = requires(C& comm, std::span<typename C::request> requests) {
  { comm.cancel(requests) } noexcept -> std::same_as<void>;
};

template <class C>
concept reduces_everywhere = requires(C& comm, std::span<float> f, std::span<double> d, reduction op, phase p) {
  { comm.allreduce(f, op, p) } -> std::same_as<void>;
  { comm.allreduce(d, op, p) } -> std::same_as<void>;
};

template <class C>
concept knows_its_reach = requires(C const& comm) {
  { comm.template reaches<Kokkos::HostSpace>() } -> std::same_as<bool>;
};

/// Ranks that exchange messages: the only way in which the library talks between processes.
///
/// A communicator is a handle: copies are cheap and stand for the same ranks. Peers are ranks of it.
/// * `rank()`, `size()` — do not change.
/// * `isend`, `irecv` — start a message of contiguous bytes; the bytes belong to the communicator until a wait says
///   that the request is complete. Never block. A receive may offer more room than the message needs.
/// * `wait_any` — blocks until one active request is complete, makes it inactive and gives its position;
///   `requests.size()` when none is active. `wait_all` — until all are. Either lets `bytes()` of a receive tell what
///   arrived. A message that exceeds the room its receive offered is an `error`.
/// * `cancel` — ends the active ones of these requests, if any, without their messages; throws nothing. Afterwards they
///   are inactive and no receive writes to its room. A receive whose message is already arriving may wait for the rest
///   of it; a send that does not end soon may be left to itself, and then its bytes are still read when its peer asks
///   for them. What the other ranks send from now on, and expect, belongs to a collective that this rank has left: so
///   the communicator is of no more use to it, and on all copies of it on this rank `isend`, `irecv` and `allreduce`
///   are an `error` (fault::communication) that says so. Other ranks are not told.
/// * `allreduce` — in place over the whole span, same length, operation and phase on all ranks; the result is
///   bit-identical on all of them. It is the communicator's own: the yardstick that `dense` measures.
/// * `reaches<MemorySpace>()` — whether messages may lie in that memory; the rest goes through `staging`.
///
/// Every other collective is built from messages (`comm/collectives.hpp`), so that `counted` sees each byte.
template <class C>
concept communicator = std::copy_constructible<C> && ranked<C> && sends_and_receives<C> && waits<C> && cancels<C> &&
                       reduces_everywhere<C> && knows_its_reach<C>;

} // namespace oktopk
