// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>

#include <exception>
#include <tuple>

namespace oktopk::detail {

/// Ends the messages of a collective that is left by an exception, so that none arrives in memory that is gone.
///
/// To be made before the first message, and after the memory of all of them: `cancel_on_unwind const guard(comm,
/// sends_, receives_);`. Names the requests, single ones and arrays or vectors that may still grow, which must outlive
/// it. Where an exception leaves the scope, what is active of them is cancelled, and the communicator is of no more use
/// to this rank (see `communicator`): so nothing may be thrown in the scope that all ranks throw alike and live on
/// after. Costs nothing else.
template <class Comm, class... Requests>
class cancel_on_unwind {
public:
  explicit cancel_on_unwind(Comm& comm, Requests&... requests)
      : comm_(comm), requests_(requests...), exceptions_(std::uncaught_exceptions()) {}

  cancel_on_unwind& operator=(cancel_on_unwind&&) = delete;

  ~cancel_on_unwind() {
    if (std::uncaught_exceptions() > exceptions_) {
      comm_.cancel(std::span<request>()); // also where none is under way: the other ranks still expect some
      std::apply([this](auto&... each) { (this->cancel_each(each), ...); }, requests_);
    }
  }

private:
  using request = typename Comm::request;

  template <class R>
  void cancel_each(R& requests) noexcept {
    if constexpr (message_request<R>) {
      comm_.cancel(std::span<R>(&requests, 1));
    } else {
      comm_.cancel(std::span<typename R::value_type>(requests));
    }
  }

  Comm& comm_;
  std::tuple<Requests&...> requests_;
  int exceptions_;
};

} // namespace oktopk::detail
