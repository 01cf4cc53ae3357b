// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/dense/combine.hpp>
#include <oktopk/dense/wire/concept.hpp>
#include <oktopk/dense/wire/plain.hpp>

#include <cstdint>
#include <type_traits>

namespace oktopk::detail {

/// The wires of one algorithm with their buffers: its policy's, and the plain one for vectors that the policy does not
/// code.
template <execution_space E, gradient_value Value, dense_wire<E, Value> Wire>
class wires {
public:
  wires() = default;
  explicit wires(typename Wire::options const& how) : policy_(how) {}

  Wire const& policy() const { return policy_; }

  /// Whether a vector of `count` values is coded.
  bool codes(std::int64_t count) const { return policy_.codes(count * std::int64_t(sizeof(Value))); }

  /// Bytes of a message of `part` values, of a vector of `count`.
  std::int64_t message_bytes(std::int64_t part, std::int64_t count) const {
    return codes(count) ? policy_.template encoded_bytes<Value>(part) : plain_wire::encoded_bytes<Value>(part);
  }

  /// Begins a call: runs `body(wire, policy, call)` with the policy's wire where `coded`, else with the plain one.
  /// `body` binds the wire and sends. The preparation of the caller's vectors is here, for all algorithms: losses of a
  /// maximum are refused, `own` is copied to the place of the result unless the wire can leave it where it is, and
  /// `lost` is cleared where nothing will be noted.
  template <class Body>
  void run(E const& exec, bool coded, reduction_call<Value> call, Body&& body) {
    if constexpr (!Wire::is_plain) {
      if (coded) {
        refuse_losses_of(call.op, call.lost);
        if (!coded_.leaves_own_values(policy_)) {
          bring(exec, call);
        }
        body(coded_, policy_, call);
        return;
      }
    }
    begin_lossless(exec, call.op, call.lost, call.count);
    bring(exec, call);
    body(plain_, plain_wire(), call);
  }

private:
  static void bring(E const& exec, reduction_call<Value>& call) {
    if (call.own != call.values) {
      copy_values(exec, call.own, call.count, call.values);
      call.own = call.values;
    }
  }

  struct none {};

  Wire policy_;
  bound_plain_wire<E, Value> plain_;
  [[no_unique_address]] std::conditional_t<Wire::is_plain, none, typename Wire::template bound_to<E, Value>> coded_;
};

} // namespace oktopk::detail
