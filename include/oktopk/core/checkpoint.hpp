// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/integers.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <ios>
#include <istream>
#include <ostream>
#include <span>
#include <sstream>
#include <type_traits>
#include <vector>

namespace oktopk {

namespace detail {

/// Takes any part of a state, for the concept to try.
struct any_part {
  template <class T>
  void operator()(T&) const {}
};

template <class S>
concept names_its_type = requires {
  { S::type_name() } -> std::convertible_to<std::string>;
};

template <class S>
concept visits_its_parts = requires(S& state, S const& fixed, detail::any_part visit) {
  S::each_part(state, visit);
  S::each_part(fixed, visit);
};

/// A state that can be written to a file.
///
/// * `type_name()` — a name that no other type of state has: algorithm, policies and value type.
/// * `each_part(state, visit)` — calls `visit` with every number, and every vector of numbers, of a state that is const
///   or not; always in the same order.
template <class S>
concept state_of_parts = std::default_initializable<S> && detail::names_its_type<S> && detail::visits_its_parts<S>;

/// A state with parts that came to its type later: they lie behind the others, and only where there are any, so that
/// both readers and files from before them go on.
///
/// * `has_later_parts()`, `each_later_part(state, visit)`.
template <class S>
concept state_of_later_parts = requires(S& state, S const& fixed, detail::any_part visit) {
  { fixed.has_later_parts() } -> std::same_as<bool>;
  S::each_later_part(state, visit);
  S::each_later_part(fixed, visit);
};

/// The beginning of a checkpoint. Numbers have the byte order of the machine that writes; `byte_order` shows it.
struct checkpoint_header {
  std::array<char, 8> magic = {'o', 'k', 't', 'o', 'p', 'k', '0', '2'};
  std::uint64_t byte_order = 0x0102030405060708U;
  std::uint64_t bytes = 0;  ///< of the name of the type and of the parts, in this order
  std::uint64_t digest = 0; ///< of these bytes
};

static_assert(sizeof(checkpoint_header) == 32, "no padding, whose bytes would be anything");

template <class T>
concept checkpoint_number = std::is_arithmetic_v<T>;

/// Stops a stream from throwing, so that each failure becomes an `error`. Restores the stream's exceptions at the end
/// of the scope.
class silent_stream {
public:
  explicit silent_stream(std::ios& stream) : stream_(stream), before_(stream.exceptions()) {
    stream_.exceptions(std::ios::goodbit);
  }

  ~silent_stream() {
    try {
      stream_.exceptions(before_);
    } catch (...) { // the stream has failed before; its exceptions are set
    }
  }

  silent_stream& operator=(silent_stream&&) = delete;

private:
  std::ios& stream_;
  std::ios::iostate before_;
};

/// Passes on the bytes of a state, with the name of its type first.
template <class State, class Sink>
void visit_bytes(State const& state, Sink const& sink) {
  auto const visit = [&sink]<class Part>(Part const& part) {
    if constexpr (checkpoint_number<Part>) {
      sink(&part, sizeof(part));
    } else {
      static_assert(checkpoint_number<typename Part::value_type>, "oktopk: a part of a state is made of numbers");
      auto const size = static_cast<std::uint64_t>(part.size());
      sink(&size, sizeof(size));
      sink(part.data(), part.size() * sizeof(typename Part::value_type));
    }
  };
  visit(std::string(State::type_name()));
  State::each_part(state, visit);
  if constexpr (state_of_later_parts<State>) {
    if (state.has_later_parts()) {
      State::each_later_part(state, visit);
    }
  }
}

template <class State>
checkpoint_header header_of(State const& state) {
  checkpoint_header header;
  fnv1a digest;
  visit_bytes(state, [&](void const* data, std::size_t bytes) {
    header.bytes += bytes;
    digest.add(data, bytes);
  });
  header.digest = digest.value();
  return header;
}

/// What `save` writes, in memory that is taken once.
template <class State>
std::vector<char> checkpoint_of(State const& state) {
  checkpoint_header const header = header_of(state);
  std::vector<char> all;
  all.reserve(sizeof(header) + header.bytes);
  auto const write = [&](void const* data, std::size_t bytes) {
    auto const* const begin = static_cast<char const*>(data);
    all.insert(all.end(), begin, begin + bytes);
  };
  write(&header, sizeof(header));
  visit_bytes(state, write);
  return all;
}

/// Visits the parts of a state and fills them from a stream. Reads no more bytes than the header says.
class checkpoint_reader {
public:
  explicit checkpoint_reader(std::istream& in) : in_(in) {
    checkpoint_header const expected;
    if (!in_) {
      throw error(fault::bad_file, unreadable);
    }
    read(&header_, sizeof(header_));
    if (header_.magic != expected.magic) {
      throw error(fault::bad_file, "this is no checkpoint");
    }
    if (header_.byte_order != expected.byte_order) {
      throw error(fault::bad_file, "the checkpoint was written on a machine with another byte order");
    }
    left_ = header_.bytes;
  }

  template <checkpoint_number T>
  void operator()(T& value) {
    part(&value, sizeof(T));
  }

  // Reads in steps: a damaged size then fails at the end of the file, before memory runs out.
  template <checkpoint_number T>
  void operator()(std::vector<T>& values) {
    constexpr std::uint64_t step = std::uint64_t(1) << 20;
    std::uint64_t size = 0;
    (*this)(size);
    values.clear();
    for (std::uint64_t have = 0; have < size; have += step) {
      std::uint64_t const more = size - have < step ? size - have : step;
      values.resize(have + more);
      part(values.data() + have, more * sizeof(T));
    }
  }

  /// The name of the type of state, which lies before the parts.
  std::string type() {
    std::vector<char> letters;
    (*this)(letters);
    return {letters.begin(), letters.end()};
  }

  bool has_more() const { return left_ > 0; }

  /// Throws if bytes are left that no part took, or if the bytes differ from the written ones.
  void end() {
    if (left_ != 0) {
      throw error(fault::bad_file, "the checkpoint holds " + std::to_string(left_) + " bytes more than the state has");
    }
    if (digest_.value() != header_.digest) {
      throw error(fault::bad_file, "the checkpoint is damaged");
    }
  }

private:
  void part(void* to, std::size_t bytes) {
    if (bytes > left_) {
      throw error(fault::bad_file, "the checkpoint holds less than the state has");
    }
    read(to, bytes);
    digest_.add(to, bytes);
    left_ -= bytes;
  }

  void read(void* to, std::size_t bytes) {
    in_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
    if (static_cast<std::size_t>(in_.gcount()) != bytes) {
      throw error(fault::bad_file, in_.bad() ? unreadable : "a checkpoint is cut short");
    }
  }

  static constexpr char const* unreadable = "the stream cannot be read; its file may not be open";

  std::istream& in_;
  checkpoint_header header_;
  fnv1a digest_;
  std::uint64_t left_ = 0;
};

} // namespace detail

/// Writes a state (of an algorithm or of `sgd`) to a stream opened in binary mode, for the same kind of machine to
/// read.
///
/// Takes 32 bytes, the name of the type and the numbers; the same state gives the same bytes. Flushes the stream, so that
/// a full disk shows. Throws `bad_file` if the stream fails, for any exceptions that the stream is set to throw.
template <detail::state_of_parts State>
void save(std::ostream& out, State const& state) {
  detail::silent_stream const silent(out);
  detail::checkpoint_header const header = detail::header_of(state);
  auto const write = [&](void const* data, std::size_t bytes) {
    out.write(static_cast<char const*>(data), static_cast<std::streamsize>(bytes));
  };
  write(&header, sizeof(header));
  detail::visit_bytes(state, write);
  if (!out.flush()) { // else the bytes may still lie in the stream, whose destructor says nothing of a full disk
    throw error(fault::bad_file, "a checkpoint could not be written");
  }
}

/// Reads the next of several checkpoints in one stream, and nothing after it.
///
/// Throws `bad_file` if the stream cannot be read, or if it holds no checkpoint, or one that is of another type of
/// state, cut short or damaged, for any exceptions that the stream is set to throw.
template <detail::state_of_parts State>
State load_next(std::istream& in) {
  detail::silent_stream const silent(in);
  detail::checkpoint_reader read(in);
  if (std::string found = read.type(), expected = State::type_name(); found != expected) {
    std::replace_if(
        found.begin(), found.end(), [](char each) { return each < ' ' || each > '~'; }, '?'); // damaged
    throw error(fault::bad_file, "the checkpoint holds a state of " + found + ", expected one of " + expected);
  }
  State state;
  State::each_part(state, read);
  if constexpr (detail::state_of_later_parts<State>) {
    if (read.has_more()) {
      State::each_later_part(state, read);
    }
  }
  read.end();
  return state;
}

/// Reads a state that `save` wrote for the same type, up to the end of the stream.
///
/// Throws `bad_file` as `load_next` does, and if anything follows.
template <detail::state_of_parts State>
State load(std::istream& in) {
  detail::silent_stream const silent(in);
  State state = load_next<State>(in);
  if (in.peek() != std::istream::traits_type::eof()) {
    throw error(fault::bad_file, "something follows the checkpoint");
  }
  return state;
}

namespace detail {

/// Reads what `checkpoint_of` gave, as `load` does.
template <class State>
State state_of(std::span<char const> checkpoint) {
  std::istringstream in(std::string(checkpoint.begin(), checkpoint.end()));
  return load<State>(in);
}

} // namespace detail

} // namespace oktopk
