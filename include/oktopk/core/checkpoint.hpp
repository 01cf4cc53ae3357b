// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>

#include <array>
#include <cstdint>
#include <istream>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

namespace oktopk {

namespace detail {

inline constexpr std::array<char, 8> checkpoint_magic = {'o', 'k', 't', 'o', 'p', 'k', '0', '1'};

struct checkpoint_writer {
  std::ostream& out;

  template <class T>
    requires std::is_trivially_copyable_v<T>
  void operator()(T const& value) {
    out.write(reinterpret_cast<char const*>(&value), static_cast<std::streamsize>(sizeof(T)));
  }

  template <class T>
  void operator()(std::vector<T> const& values) {
    (*this)(static_cast<std::uint64_t>(values.size()));
    out.write(reinterpret_cast<char const*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  }
};

struct checkpoint_reader {
  std::istream& in;

  template <class T>
    requires std::is_trivially_copyable_v<T>
  void operator()(T& value) {
    take(&value, sizeof(T));
  }

  template <class T>
  void operator()(std::vector<T>& values) {
    std::uint64_t size = 0;
    (*this)(size);
    // In steps, so that a damaged size ends with the file and not with the memory.
    constexpr std::uint64_t step = std::uint64_t(1) << 20;
    values.clear();
    for (std::uint64_t have = 0; have < size; have += step) {
      std::uint64_t const more = size - have < step ? size - have : step;
      values.resize(have + more);
      take(values.data() + have, more * sizeof(T));
    }
  }

  void take(void* to, std::size_t bytes) {
    in.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
    if (static_cast<std::size_t>(in.gcount()) != bytes) {
      throw error(fault::bad_file, "a checkpoint is cut short");
    }
  }
};

} // namespace detail

/// Writes a state (of an algorithm or of `sgd`) to a stream opened in binary mode. Numbers lie as this machine has
/// them. Throws `bad_file` where the stream fails.
template <class State>
void save(std::ostream& out, State const& state) {
  detail::checkpoint_writer write{out};
  write(detail::checkpoint_magic);
  State::each_part(state, write);
  if (!out) {
    throw error(fault::bad_file, "a checkpoint could not be written");
  }
}

/// Reads back what `save` wrote for the same type of state. Throws `bad_file` where it is something else or cut short.
template <class State>
State load(std::istream& in) {
  detail::checkpoint_reader read{in};
  auto magic = detail::checkpoint_magic;
  read(magic);
  if (magic != detail::checkpoint_magic) {
    throw error(fault::bad_file, "this is no checkpoint");
  }
  State state;
  State::each_part(state, read);
  return state;
}

} // namespace oktopk
