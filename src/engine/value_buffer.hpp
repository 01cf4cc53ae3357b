// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "engine/engine_space.hpp"

#include <oktopk/core/value_forms.hpp>
#include <oktopk/core/workspace.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace oktopk::detail {

/// The types of values that a program may give.
enum class element : std::uint8_t { float32, float64, float16, bfloat16 };

/// Values of a program, one after the other in memory that kernels of the engine reach; the program owns them.
struct value_buffer {
  void* data = nullptr; ///< aligned for the type; null where there is no value
  std::int64_t length = 0;
  element type = element::float32;
};

template <gradient_value Value>
inline constexpr element element_of = std::is_same_v<Value, float> ? element::float32 : element::float64;

/// A type of values as it lies in memory: `read` makes a double or float of it, and `write` is the way back.
template <gradient_value Stored>
struct wide_element {
  using stored = Stored;

  KOKKOS_FORCEINLINE_FUNCTION static Stored read(Stored value) { return value; }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static Stored write(Value value) {
    return static_cast<Stored>(value);
  }
};

/// A narrowed value goes by way of float, as torch has it, and is infinite where it is beyond the largest.
struct float16_element {
  using stored = std::uint16_t;

  KOKKOS_FORCEINLINE_FUNCTION static float read(stored half) { return float16_form::from_bits<float>(half); }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static stored write(Value value) {
    constexpr std::uint32_t overflows = __builtin_bit_cast(std::uint32_t, 65520.0F); // is rounded beyond 65504
    auto const narrowed = static_cast<float>(value);
    auto const magnitude = magnitude_bits(narrowed);
    if (magnitude >= overflows && magnitude <= infinity_bits<float>) {
      return sign_bit(narrowed) ? 0xfc00U : 0x7c00U;
    }
    return float16_form::to_bits(narrowed);
  }
};

struct bfloat16_element {
  using stored = std::uint16_t;

  KOKKOS_FORCEINLINE_FUNCTION static float read(stored half) { return bfloat16_form::from_bits<float>(half); }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static stored write(Value value) {
    return bfloat16_form::to_bits(static_cast<float>(value));
  }
};

/// Calls `job` with the buffer's memory and its type of element.
template <class Job>
void with_elements(value_buffer const& of, Job const& job) {
  switch (of.type) {
  case element::float32: return job(static_cast<float*>(of.data), wide_element<float>());
  case element::float64: return job(static_cast<double*>(of.data), wide_element<double>());
  case element::float16: return job(static_cast<std::uint16_t*>(of.data), float16_element());
  case element::bfloat16: return job(static_cast<std::uint16_t*>(of.data), bfloat16_element());
  }
}

template <class Element, gradient_value Value>
struct widening {
  typename Element::stored const* from;
  Value* to;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { to[i] = static_cast<Value>(Element::read(from[i])); }
};

template <class Element, gradient_value Value>
struct narrowing {
  Value const* from;
  typename Element::stored* to;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { to[i] = Element::write(from[i]); }
};

template <gradient_value Value>
struct multiplication {
  Value* values;
  Value factor;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { values[i] *= factor; }
};

/// Threads that find a value which is not finite all write the same.
template <class Element>
struct search_of_non_finite {
  typename Element::stored const* values;
  std::int32_t* found;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    auto const value = Element::read(values[i]);
    if (magnitude_bits(value) >= infinity_bits<std::remove_const_t<decltype(value)>>) {
      *found = 1;
    }
  }
};

/// Enqueues the values of a buffer as those of another type.
template <execution_space E, gradient_value Value>
void widen(E const& exec, value_buffer const& from, Value* to) {
  with_elements(from, [&]<class Stored, class Element>(Stored const* values, Element) {
    Kokkos::parallel_for("oktopk::engine::widen", index_range<E>(exec, 0, from.length),
                         widening<Element, Value>{values, to});
  });
}

/// Enqueues the way back.
template <execution_space E, gradient_value Value>
void narrow(E const& exec, Value const* from, value_buffer const& to) {
  with_elements(to, [&]<class Stored, class Element>(Stored* values, Element) {
    Kokkos::parallel_for("oktopk::engine::narrow", index_range<E>(exec, 0, to.length),
                         narrowing<Element, Value>{from, values});
  });
}

/// Enqueues a kernel that makes all values this one.
template <execution_space E>
void fill(E const& exec, value_buffer const& buffer, float value) {
  with_elements(buffer, [&]<class Stored, class Element>(Stored* values, Element) {
    fill_array("oktopk::engine::fill", exec, values, buffer.length, Element::write(value));
  });
}

/// Enqueues the product of values and a factor.
template <execution_space E, gradient_value Value>
void multiply(E const& exec, Value* values, std::int64_t length, Value factor) {
  Kokkos::parallel_for("oktopk::engine::multiply", index_range<E>(exec, 0, length),
                       multiplication<Value>{values, factor});
}

/// Waits for the instance. `found` is room that is kept from call to call.
template <execution_space E>
bool are_finite(E const& exec, value_buffer const& buffer, shared_numbers<std::int32_t, E>& found) {
  char const* const label = "oktopk::engine::are_finite";
  found.reserve(exec, 1);
  fill_array(label, exec, found.device().data(), 1, std::int32_t(0));
  with_elements(buffer, [&]<class Stored, class Element>(Stored const* values, Element) {
    Kokkos::parallel_for(label, index_range<E>(exec, 0, buffer.length),
                         search_of_non_finite<Element>{values, found.device().data()});
  });
  found.to_host(exec, 1, label);
  return *found.host() == 0;
}

/// Memory for values that come in another type, or in other buckets, kept from step to step: what a device gives, and
/// takes back, makes it wait.
template <gradient_value Value, execution_space E>
class value_rooms {
public:
  using room = std::unique_ptr<buffer<Value, typename E::memory_space>>;

  /// One of at least so many values, in no order: the smallest that is free, or a new one in place of the largest.
  room take(E const& exec, std::int64_t length) {
    room best;
    for (room& each : free_) {
      bool const fits = each->capacity() >= length;
      bool const had_fit = best && best->capacity() >= length;
      if (!best ||
          (fits ? !had_fit || each->capacity() < best->capacity() : !had_fit && each->capacity() > best->capacity())) {
        std::swap(best, each);
      }
    }
    std::erase(free_, nullptr);
    if (!best || best->capacity() < length) {
      best = std::make_unique<typename room::element_type>("oktopk::engine::room");
    }
    best->reserve(exec, length);
    return best;
  }

  /// What is enqueued may still use it.
  void give_back(room taken) { free_.push_back(std::move(taken)); }

private:
  std::vector<room> free_;
};

} // namespace oktopk::detail
