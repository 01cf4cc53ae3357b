// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/catalogue/policies.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/message_group.hpp>
#include <oktopk/comm/self.hpp>
#include <oktopk/core/cost.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/dense/concept.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <istream>
#include <limits>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace oktopk {

/// The speed of a network and of a processor, which gives the time of a `call_cost`.
///
/// All seconds hold while all ranks work and send at once. A plain value; the same on all ranks if `measure`
/// made it. Written and read as text with one name and number in each line, so a user can type it from a data sheet.
struct machine_model {
  /// Seconds that a format takes for one entry.
  struct format_speed {
    std::string format; ///< the format's name, values included
    double encode = 0;
    double decode = 0;
  };

  static constexpr double short_bytes = 1 << 14; ///< messages of fewer bytes take a part of `handshake`

  double meeting = 0;    ///< seconds of a call in addition to its work, since ranks begin it at different times
  double latency = 5e-5; ///< seconds from one rank to another, for a message without content
  double handshake = 0;  ///< extra seconds of a message of 16 KiB or more; less for a shorter one, in proportion
  double beside = 0;     ///< seconds of a message that is sent while others are on their way
  double seconds_per_byte = 8e-9; ///< that a rank sends while it receives as many
  double head_start = 0;          ///< seconds of the bytes that an idle network takes at once
  double select = 2e-9;           ///< seconds for each value that a selection reads
  double add = 1e-9;              ///< seconds for each dense value that is added or copied
  double pass = 0;                ///< seconds of a selection, an encoding or a decoding of an empty vector
  std::vector<format_speed> formats{};

  /// Reads the text that `<<` wrote; missing numbers keep their defaults. Throws `bad_state` for a line of another
  /// form, and for a stream that cannot be read.
  static machine_model load(std::istream& in);

  /// Measures network and processor while all ranks work at once, for selections of k of `length` values. Collective;
  /// takes about half a second: sizes grow until a measurement takes some milliseconds. The result is the same on all
  /// ranks. The numbers of the network are the mean of messages to the next rank and of messages between ranks that are
  /// P/2 apart.
  template <gradient_value Value, gradient_index Index, execution_space E, communicator Comm>
  static machine_model measure(E const& exec, Comm comm, std::int64_t length, std::int64_t k);

  /// Seconds of a call whose entries have a format of that name; a format that was not measured counts as the slowest
  /// one.
  double seconds(detail::call_cost const& cost, std::string_view format) const {
    double encode = 0;
    double decode = 0;
    for (format_speed const& each : formats) {
      bool const found = each.format == format;
      encode = found ? each.encode : std::max(encode, each.encode);
      decode = found ? each.decode : std::max(decode, each.decode);
      if (found) {
        break;
      }
    }
    double const each_bytes = cost.bytes / std::max(cost.messages + cost.beside, 1.0);
    return (cost.messages > 0 ? meeting : 0) +
           cost.messages * (latency + handshake * std::min(each_bytes / short_bytes, 1.0)) + cost.beside * beside +
           transfer(cost) + cost.selected * select + cost.encoded * encode + cost.decoded * decode + cost.added * add +
           cost.passes * pass;
  }

  /// Seconds of a call that its bytes take.
  double transfer(detail::call_cost const& cost) const {
    return std::max(cost.bytes * seconds_per_byte - head_start, 0.0);
  }

  /// Calls `take(name, number)` for each number.
  template <class Model, class Take>
  static void each_number(Model& model, Take const& take) {
    take("meeting", model.meeting);
    take("latency", model.latency);
    take("handshake", model.handshake);
    take("beside", model.beside);
    take("seconds_per_byte", model.seconds_per_byte);
    take("head_start", model.head_start);
    take("select", model.select);
    take("add", model.add);
    take("pass", model.pass);
    for (auto& each : model.formats) {
      take("encode " + each.format, each.encode);
      take("decode " + each.format, each.decode);
    }
  }
};

/// Writes a model as text.
inline std::ostream& operator<<(std::ostream& out, machine_model const& model) {
  machine_model::each_number(model, [&](std::string const& name, double number) {
    detail::plain_text line;
    line.precision(9);
    line << name << " = " << number << '\n';
    out << line.str();
  });
  return out;
}

inline machine_model machine_model::load(std::istream& in) {
  machine_model model;
  for (std::string line; std::getline(in, line);) {
    std::size_t const equals = line.find(" = ");
    std::string const name = line.substr(0, equals);
    std::string const number = equals == line.npos ? "" : detail::trimmed(line.substr(equals + 3));
    bool const of_format = name.starts_with("encode ") || name.starts_with("decode ");
    if (of_format && std::ranges::find(model.formats, name.substr(7), &format_speed::format) == model.formats.end()) {
      model.formats.push_back({name.substr(7), 0, 0});
    }
    bool taken = false;
    machine_model::each_number(model, [&](std::string const& each, double& place) {
      taken = taken || (each == name && detail::read_number(number, place) && // "5us" is not 5 seconds
                        detail::is_finite_magnitude(place));
    });
    if (!taken) {
      throw error(fault::bad_state, "the line \"" + line + "\" of a machine's description is not NAME = SECONDS");
    }
  }
  if (in.bad()) { // a folder, for one
    throw error(fault::bad_state, "a machine's description cannot be read");
  }
  return model;
}

namespace detail {

using seconds_clock = std::chrono::steady_clock;

inline double seconds_since(seconds_clock::time_point start) {
  return std::chrono::duration<double>(seconds_clock::now() - start).count();
}

/// Measures work that all ranks do at once. A time is that of the slowest rank, from the moment when all are there.
template <communicator Comm>
class shared_clock {
public:
  explicit shared_clock(Comm& comm) : comm_(&comm) {}

  /// Measures how much longer work without messages takes if ranks share cores; `work` is short.
  template <class Work>
  void learn_crowding(Work const& work) {
    constexpr int many = 50;
    auto const often = [&] {
      for (int i = 0; i < many; ++i) {
        work();
      }
    };
    barrier_ = seconds(5, [&] { meet(); });
    double const alone = seconds(9, work);
    crowding_ = std::max(seconds_until_all(1, often) / std::max(many * alone, 1e-12), 1.0);
  }

  /// Seconds of `work` that sends nothing, while all ranks do it.
  template <class Work>
  double seconds_of_all(int runs, Work const& work) {
    double const alone = seconds(runs, work);
    return alone < 1e-3 ? crowding_ * alone : seconds_until_all(runs, work);
  }

  /// Seconds of `work`: the least of two or three turns, since other programs on the machine only make a turn longer.
  /// Each turn is the median of `runs` runs.
  template <class Work>
  double seconds(int runs, Work const& work) {
    double least = 1e5;
    for (int turn = 0; turn < 3 && (turn < 2 || least < 0.02); ++turn) {
      picoseconds_.assign(static_cast<std::size_t>(runs), 0);
      for (std::int64_t& each : picoseconds_) {
        meet();
        auto const start = seconds_clock::now();
        work();
        each = static_cast<std::int64_t>(std::min(seconds_since(start), 1e5) * 1e12);
      }
      agree(std::span(picoseconds_));
      auto const middle = picoseconds_.begin() + runs / 2;
      std::nth_element(picoseconds_.begin(), middle, picoseconds_.end());
      least = std::min(least, 1e-12 * static_cast<double>(*middle));
    }
    return least;
  }

private:
  template <class Work>
  double seconds_until_all(int runs, Work const& work) {
    double const both = seconds(runs, [&] {
      work();
      meet();
    });
    return std::max(both - barrier_, 0.0);
  }

  void meet() {
    std::int64_t here = 0;
    agree(std::span(&here, 1));
  }

  void agree(std::span<std::int64_t> numbers) {
    allreduce_integers(*comm_, numbers, reduction::max, phase::control, workspace_);
  }

  Comm* comm_;
  collective_workspace workspace_;
  std::vector<std::int64_t> picoseconds_;
  double barrier_ = 0;
  double crowding_ = 1;
};

/// A vector of values without order, such as the gradients that a selection reads.
template <gradient_value Value>
struct scattered_values {
  Value* out;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    auto const bits = static_cast<std::uint64_t>(i + 1) * 0x9E3779B97F4A7C15U;
    double const uniform = static_cast<double>((bits ^ (bits >> 29U)) >> 11U) / 9007199254740992.0; // [0, 1)
    out[i] = static_cast<Value>((uniform - 0.5) * uniform * uniform);
  }
};

/// Indices at even distances.
template <gradient_index Index>
struct spread_indices {
  Index* out;
  std::int64_t distance;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { out[i] = static_cast<Index>(i * distance); }
};

/// Measures the time of this processor for entries of one format.
template <execution_space E, sparse_format Format, communicator Comm>
machine_model::format_speed measure_format(E const& exec, shared_clock<Comm>& clock, Format const& format,
                                           std::int64_t count, std::int64_t length,
                                           typename Format::value_type const* values) {
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using memory_space = typename E::memory_space;
  region const where{0, length};
  detail::buffer<index_type, memory_space> indices("oktopk::machine::indices");
  detail::buffer<index_type, memory_space> indices_back("oktopk::machine::decoded_indices");
  detail::buffer<value_type, memory_space> values_back("oktopk::machine::decoded_values");
  detail::buffer<std::byte, memory_space> bytes("oktopk::machine::bytes");
  indices.reserve(exec, count);
  indices_back.reserve(exec, count);
  values_back.reserve(exec, count);
  bytes.reserve(exec, round_up_to_8(format.max_encoded_bytes(count, where)));
  Kokkos::parallel_for("oktopk::machine::spread", index_range<E>(exec, 0, count),
                       spread_indices<index_type>{indices.data(), length / std::max<std::int64_t>(count, 1)});
  fence(exec, "oktopk::machine::spread");
  std::array<double, 2> encode{}; // of one entry, and of all
  std::array<double, 2> decode{};
  for (std::size_t i = 0; i < 2; ++i) {
    sparse_ref<index_type, value_type, memory_space> const entries{indices.data(), values, i == 0 ? 1 : count};
    std::int64_t written = 0;
    encode[i] = clock.seconds_of_all(1, [&] {
      written = format.encode(exec, entries, where, bytes.data());
      fence(exec, "oktopk::machine::encode");
    });
    decode[i] = clock.seconds_of_all(1, [&] {
      format.decode(exec, bytes.data(), written, entries.size(), where, indices_back.data(), values_back.data());
      fence(exec, "oktopk::machine::decode");
    });
  }
  auto const slope = [&](std::array<double, 2> const& seconds) {
    return std::max(seconds[1] - seconds[0], 0.0) / static_cast<double>(count - 1);
  };
  return {format.name(), slope(encode), slope(decode)};
}

/// Calls `visit(format)` for every format that a text can name, with these types and with each value codec.
template <gradient_value Value, gradient_index Index, class Visit>
void for_each_format(Visit const& visit) {
  auto const each = [&]<class Alternative>(Alternative const&) {
    using format = typename Alternative::template type<Value, Index>;
    if constexpr (requires(format const& one) { one.values().chosen; }) {
      constexpr auto codecs = static_cast<std::int32_t>(std::tuple_size_v<decltype(catalogue::value_codecs)>);
      for (std::int32_t i = 0; i < codecs; ++i) {
        auto values = format().values();
        values.chosen = i;
        visit(format(values));
      }
    } else {
      visit(format());
    }
  };
  std::apply([&](auto const&... one) { (each(one), ...); }, catalogue::formats);
}

/// One shift: every rank sends `count` messages of `bytes` bytes to the rank `distance` above it, modulo P.
template <execution_space E, communicator Comm>
void shift(E const& exec, Comm& comm, message_buffer<E>& space, std::int64_t bytes, int count, int distance) {
  message_group<Comm> messages;
  messages.reset(2 * static_cast<std::size_t>(count));
  cancel_on_unwind const guard(comm, messages.requests());
  for (std::int64_t i = 0; i < count; ++i) {
    messages.receive(space.wire(2 * i * bytes, bytes), (comm.rank() - distance + comm.size()) % comm.size(),
                     phase::control, message_size::known);
    messages.send(space.wire((2 * i + 1) * bytes, bytes), (comm.rank() + distance) % comm.size(), phase::control,
                  message_size::known);
  }
  messages.start(exec, comm, "oktopk::machine::shift");
  messages.wait_all(comm);
}

/// Vectors to measure a processor with: long enough to measure, and short enough for the available time.
template <gradient_value Value, execution_space E>
struct measured_vectors {
  std::int64_t values;
  std::int64_t summed;
  double density;
  buffer<Value, typename E::memory_space> data{"oktopk::machine::values"};
  buffer<Value, typename E::memory_space> sums{"oktopk::machine::sums"};

  measured_vectors(E const& exec, std::int64_t length, std::int64_t k)
      : values(std::clamp<std::int64_t>(length, 1 << 12, 1 << 21)), summed(std::min<std::int64_t>(values, 1 << 20)),
        density(
            std::clamp(static_cast<double>(k) / static_cast<double>(std::max<std::int64_t>(length, 1)), 1e-6, 1.0)) {
    data.reserve(exec, values);
    sums.reserve(exec, summed);
    Kokkos::parallel_for("oktopk::machine::values", index_range<E>(exec, 0, values),
                         scattered_values<Value>{data.data()});
    copy_values(exec, data.data(), summed, sums.data());
    fence(exec, "oktopk::machine::values");
  }

  std::int64_t selected() const {
    return std::max<std::int64_t>(1, std::llround(density * static_cast<double>(values)));
  }

  void add(E const& exec, std::int64_t count) {
    combine(exec, reduction::sum, data.data(), count, sums.data());
    fence(exec, "oktopk::machine::add");
  }
};

template <gradient_index Index, gradient_value Value, execution_space E, class Clock>
void measure_selection(E const& exec, Clock& clock, measured_vectors<Value, E> const& of, machine_model& found) {
  constexpr double least_share = 0.1; // of a long call that is its values': limits the effect of noise
  auto const selecting = [&](std::int64_t length, std::int64_t k) {
    using selection = ok_topk<E, self_communicator, with_format<coo<Value, Index>>>;
    typename selection::options const how{.length = length, .k = k};
    selection alone(exec, {}, how);
    array_ref<Value const, typename E::memory_space> const gradient(of.data.data(), static_cast<std::size_t>(length));
    alone(gradient);
    double const seconds = clock.seconds_of_all(length < (1 << 16) ? 15 : 1, [&] { alone(gradient); });
    return std::pair(seconds, selection::expected_cost(how, 1).passes);
  };
  auto const [short_call, passes] = selecting(64, 1);
  found.pass = short_call / passes;
  double const long_call = selecting(of.values, of.selected()).first;
  found.select = std::max(long_call - short_call, least_share * long_call) / static_cast<double>(of.values);
}

template <gradient_index Index, gradient_value Value, execution_space E, class Clock>
void measure_formats(E const& exec, Clock& clock, measured_vectors<Value, E> const& of, machine_model& found) {
  for_each_format<Value, Index>([&](auto const& format) {
    std::int64_t const entries = std::clamp<std::int64_t>(of.selected(), 1 << 10, 1 << 14);
    auto const width = std::max(entries, static_cast<std::int64_t>(static_cast<double>(entries) / of.density));
    found.formats.push_back(measure_format(exec, clock, format, entries, width, of.data.data()));
  });
}

/// Short messages, then longer ones until they take 10 ms. The numbers are the mean of those of two distances.
template <execution_space E, communicator Comm, class Clock>
void measure_network(E const& exec, Comm& comm, Clock& clock, machine_model& found) {
  constexpr double long_enough = 0.01;
  constexpr int in_a_row = 8;     // short messages whose latencies add up
  constexpr int side_by_side = 8; // short messages that are under way at once
  message_buffer<E> space("oktopk::machine::message");
  constexpr auto short_bytes = static_cast<std::int64_t>(machine_model::short_bytes);
  std::int64_t const most = 64 * short_bytes;
  space.reserve(exec, comm, 2 * most);
  space.clear(exec, 0, 2 * most);
  fence(exec, "oktopk::machine::message");
  for (int const distance : {1, comm.size() / 2}) {
    auto const timed = [&](std::int64_t bytes, int count, int runs, int times = 1) {
      return clock.seconds(runs, [&] {
        for (int i = 0; i < times; ++i) {
          shift(exec, comm, space, bytes, count, distance);
        }
      });
    };
    double const empty = timed(8, 1, 9);
    double const latency = std::max(timed(8, 1, 5, in_a_row) - empty, 0.0) / (in_a_row - 1);
    double const middle = timed(short_bytes, 1, 1);
    std::int64_t bytes = 4 * short_bytes;
    double const longer = timed(bytes, 1, 1);
    double before = middle;
    double full = longer;
    while (bytes < most && (full < long_enough || bytes == 4 * short_bytes)) {
      bytes *= 4;
      before = std::exchange(full, timed(bytes, 1, 1));
    }
    double const byte = std::max(full - before, 0.0) / (0.75 * static_cast<double>(bytes)); // `before` had a quarter
    auto const saved = [&](double seconds, double of) { return std::max(empty + byte * of - seconds, 0.0); };
    double const head_start = std::max(saved(middle, short_bytes), saved(longer, 4.0 * short_bytes));
    double const transfer = std::max(byte * short_bytes - head_start, 0.0);
    found.meeting += std::max(empty - latency, 0.0) / 2;
    found.latency += latency / 2;
    found.handshake += std::max(middle - empty - transfer, 0.0) / 2;
    found.beside += std::max(timed(8, side_by_side, 5) - empty, 0.0) / (side_by_side - 1) / 2;
    found.seconds_per_byte += byte / 2;
    found.head_start += head_start / 2;
  }
}

} // namespace detail

template <gradient_value Value, gradient_index Index, execution_space E, communicator Comm>
machine_model machine_model::measure(E const& exec, Comm comm, std::int64_t length, std::int64_t k) {
  machine_model found;
  detail::cancel_on_unwind const alone_here(comm); // memory may be missing on one rank
  detail::shared_clock<Comm> clock(comm);
  detail::measured_vectors<Value, E> vectors(exec, length, k);
  clock.learn_crowding([&] { vectors.add(exec, std::min<std::int64_t>(vectors.summed, 1 << 16)); });
  detail::measure_selection<Index>(exec, clock, vectors, found);
  found.add = clock.seconds_of_all(1, [&] { vectors.add(exec, vectors.summed); }) / static_cast<double>(vectors.summed);
  detail::measure_formats<Index>(exec, clock, vectors, found);
  found.latency = 0;
  found.seconds_per_byte = 0;
  if (comm.size() > 1) {
    detail::measure_network(exec, comm, clock, found);
  }
  return found;
}

} // namespace oktopk
