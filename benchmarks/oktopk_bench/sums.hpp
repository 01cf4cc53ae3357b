// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "entries.hpp"
#include "measure.hpp"
#include "report.hpp"
#include "result.hpp"

#include "programs/added_codecs.hpp"
#include "programs/pending_file.hpp"
#include "programs/progress.hpp"
#include "programs/together.hpp"

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/catalogue/sparse_sums.hpp>
#include <oktopk/format/coo.hpp>
#include <oktopk/sparse_sum.hpp>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// The operation `sparse_sum`: the sum of vectors that are sparse already, beside what programs do without it.
namespace oktopk_bench {

using index_view = Kokkos::View<std::int32_t*, space::memory_space>;

/// A way to sum vectors that are sparse already; has what a row of the table asks for.
template <oktopk::communicator Comm>
class sum_scheme {
public:
  sum_scheme() = default;
  sum_scheme& operator=(sum_scheme&&) = delete;
  virtual ~sum_scheme() = default;

  /// Makes ready what a call takes; not measured.
  virtual void prepare(index_view const& indices, accumulator_view const& values) = 0;
  virtual void sum() = 0;
  /// The result of the last call on the host, without zeros.
  virtual host_entries result() const = 0;
  virtual double bound_words() const = 0;
  virtual oktopk::call_statistics last_call() const = 0;
  std::int64_t k() const { return last_call().local_selected; }
};

/// What the library gives, by its text.
template <oktopk::communicator Comm>
class library_sum final : public sum_scheme<Comm> {
public:
  library_sum(space const& exec, Comm comm, entries_source const& of, std::string const& text)
      : sum_(oktopk::make_sparse_sum(exec, std::move(comm), text, {.length = of.length, .width = of.width})) {}

  void prepare(index_view const& indices, accumulator_view const& values) override {
    indices_ = indices;
    values_ = values;
  }
  void sum() override { result_ = sum_(indices_, values_); }
  host_entries result() const override {
    return {on_host<std::int32_t>(result_.indices()), on_host<float>(result_.values())};
  }
  double bound_words() const override { return sum_.bound_words(); }
  oktopk::call_statistics last_call() const override { return sum_.last_call(); }

private:
  using sum_type = oktopk::any_sparse_sum<space>;
  sum_type sum_;
  index_view indices_;
  accumulator_view values_;
  typename sum_type::entries_type result_;
};

/// What programs do by hand: sizes of all ranks, indices and values of all ranks, and a sum of all on every rank.
template <oktopk::communicator Comm>
class gather_and_sum final : public sum_scheme<Comm> {
public:
  gather_and_sum(space const& exec, Comm comm, entries_source const& of)
      : exec_(exec), comm_(std::move(comm)), length_(of.length) {
    if (of.width != 1) {
      throw oktopk::error(oktopk::fault::option_out_of_range, "gather_and_sum takes one value an entry");
    }
  }

  void prepare(index_view const& indices, accumulator_view const& values) override {
    mine_ = {indices.data(), values.data(), static_cast<std::int64_t>(indices.extent(0))};
  }
  void sum() override {
    oktopk::call_context<space, Comm> call{exec_, comm_, "gather_and_sum", length_, 0, calls_++, {}, {}};
    auto const sizes = counts_.run(call, mine_.size());
    auto const all = gather_.run(call, mine_, sizes);
    sum_.open(exec_, {0, length_});
    std::int64_t begin = 0;
    for (std::int64_t const size : sizes) {
      sum_.add(exec_, all.slice(begin, begin + size));
      begin += size;
    }
    result_ = sum_.extract(exec_);
    exec_.fence();
    figures_.local_selected = mine_.size();
    figures_.global_selected = result_.size();
    sent_ = 0; // by the rank that sends most
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      sent_ = std::max(sent_, 2.0 * static_cast<double>(oktopk::detail::allgatherv_entries_sent(sizes, rank)));
    }
  }
  host_entries result() const override {
    return {on_host<std::int32_t>(result_.indices), on_host<float>(result_.values)};
  }
  double bound_words() const override {
    return sent_ + oktopk::detail::count_gathering<Comm>::bound_words(comm_.size()).total();
  }
  oktopk::call_statistics last_call() const override { return figures_; }

private:
  using entries_type = oktopk::sparse_ref<std::int32_t, float, space::memory_space>;
  space exec_;
  Comm comm_;
  std::int64_t length_;
  std::int64_t calls_ = 0;
  entries_type mine_;
  entries_type result_;
  double sent_ = 0;
  oktopk::call_statistics figures_;
  oktopk::detail::count_gathering<Comm> counts_;
  oktopk::encoded_allgatherv<space, Comm, oktopk::coo<>> gather_;
  oktopk::region_sum<std::int32_t, float, space> sum_;
};

struct entry_scattering {
  std::int32_t const* indices;
  float const* values;
  std::int64_t width;
  float* to;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    to[static_cast<std::int64_t>(indices[i / width]) * width + i % width] = values[i];
  }
};

/// A dense allreduce of the whole vector, zeros included, which were written before.
template <oktopk::communicator Comm>
class dense_sum_of final : public sum_scheme<Comm> {
public:
  dense_sum_of(space const& exec, Comm comm, entries_source const& of, std::string const& text)
      : exec_(exec), width_(of.width),
        allreduce_(oktopk::make_allreduce(exec, std::move(comm), text,
                                          {.length = of.length * of.width, .k = of.length * of.width},
                                          oktopk_programs::added_codecs<space>())),
        vector_(Kokkos::view_alloc(Kokkos::WithoutInitializing, "oktopk_bench::vector"),
                static_cast<std::size_t>(of.length * of.width)) {}

  void prepare(index_view const& indices, accumulator_view const& values) override {
    Kokkos::deep_copy(exec_, vector_, 0.0F);
    entry_scattering const scatter{indices.data(), values.data(), width_, vector_.data()};
    Kokkos::parallel_for("oktopk_bench::scatter",
                         oktopk::detail::index_range<space>(exec_, 0, std::int64_t(values.extent(0))), scatter);
    exec_.fence();
  }
  void sum() override {
    update_ = allreduce_(vector_);
    exec_.fence();
  }
  host_entries result() const override {
    host_entries found;
    auto const indices = on_host<std::int64_t>(update_.indices());
    auto const values = on_host<float>(update_.values());
    auto const width = static_cast<std::size_t>(width_);
    for (std::size_t i = 0; i < indices.size(); i += width) { // every place is in it
      found.indices.push_back(static_cast<std::int32_t>(indices[i] / width_));
      found.values.insert(found.values.end(), values.begin() + static_cast<std::ptrdiff_t>(i),
                          values.begin() + static_cast<std::ptrdiff_t>(i + width));
    }
    return found;
  }
  double bound_words() const override { return allreduce_.bound_words(); }
  oktopk::call_statistics last_call() const override { return allreduce_.last_call(); }

private:
  space exec_;
  std::int64_t width_;
  oktopk::any_allreduce<space> allreduce_;
  accumulator_view vector_;
  typename oktopk::any_allreduce<space>::update_type update_;
};

/// The whole program for this operation; throws what is wrong, the same on every rank.
template <oktopk::communicator Comm>
class sums_bench {
public:
  using counting = counting_communicator<Comm>;

  sums_bench(Comm comm, options const& asked, std::string const& note) : comm_(comm), asked_(asked), note_(note) {}

  void run() {
    source_ = {asked_.length.value_or(0), asked_.density.value_or(0), asked_.width, asked_.skew, asked_.seed};
    if (first() && !note_.empty()) {
      std::fprintf(stderr, "%s\n", note_.c_str());
    }
    std::vector<oktopk_programs::pending_file> files;
    together("output", oktopk::fault::bad_file, [&] {
      if (!asked_.csv.empty() && first()) {
        files.emplace_back(asked_.csv);
      }
    });
    {
      auto const steps = asked_.warmup + asked_.measured_steps();
      oktopk_programs::progress bar(first(), steps * static_cast<std::int64_t>(asked_.algorithms.size()));
      for (std::string const& text : asked_.algorithms) {
        run_scheme(text, bar);
      }
    }
    together("output", oktopk::fault::bad_file, [&] {
      for (oktopk_programs::pending_file& file : files) {
        file.write(csv_text(rows_));
        file.close();
        file.commit();
      }
    });
    if (first()) {
      std::fputs(heading_text(asked_, rows_, source_.description(), space::name()).c_str(), stdout);
      std::fputs(table_text(rows_).c_str(), stdout);
      std::fputs(asked_.control ? control_text(rows_).c_str() : "", stdout);
    }
  }

private:
  bool first() const { return comm_.rank() == 0; }

  template <class Action>
  auto together(char const* what, oktopk::fault code, Action const& action) {
    return oktopk_programs::together(comm_, what, code, action);
  }

  std::unique_ptr<sum_scheme<counting>> scheme_of(std::string const& text, counting const& counted) {
    if (text.starts_with("sparse_sum")) {
      return std::make_unique<library_sum<counting>>(exec_, counted, source_, text);
    }
    if (text == "gather_and_sum") {
      return std::make_unique<gather_and_sum<counting>>(exec_, counted, source_);
    }
    return std::make_unique<dense_sum_of<counting>>(exec_, counted, source_, text);
  }

  void run_scheme(std::string const& text, oktopk_programs::progress& bar) {
    counting counted{timed<Comm>(comm_)};
    auto const scheme = scheme_of(text, counted);
    for (std::int64_t step = -asked_.warmup; step < asked_.measured_steps(); ++step) {
      auto const mine =
          together("memory", oktopk::fault::option_out_of_range, [&] { return source_.draw(comm_.rank(), step); });
      index_view const indices("oktopk_bench::indices", mine.indices.size());
      accumulator_view const values("oktopk_bench::values", mine.values.size());
      copy(mine.indices, indices);
      copy(mine.values, values);
      scheme->prepare(indices, values);
      measurement row = measured(*scheme, counted, text);
      if (step >= 0) {
        row.algorithm = text;
        row.length = source_.length;
        row.step = step;
        rows_.push_back(row);
        if (asked_.verify) {
          check(scheme->result(), step, text);
        }
      }
      bar.advance(text);
    }
  }

  template <class T, class View>
  void copy(std::vector<T> const& from, View const& to) {
    Kokkos::View<T const*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>> const source(from.data(),
                                                                                                    from.size());
    Kokkos::deep_copy(exec_, to, source);
    exec_.fence();
  }

  measurement measured(sum_scheme<counting>& scheme, counting& counted, std::string const& text) {
    std::array<double, 1> barrier{};
    comm_.allreduce(std::span<double>(barrier), oktopk::reduction::sum, oktopk::phase::control);
    counted.reset();
    counted.inner().reset();
    // As in `measure`: MPI's own allreduce has no time limit.
    oktopk::time_limit_scope const limit(comm_, text == "dense" ? std::chrono::nanoseconds(0) : comm_.time_limit());
    auto const begin = std::chrono::steady_clock::now();
    scheme.sum();
    std::chrono::duration<double> const taken = std::chrono::steady_clock::now() - begin;
    return over_ranks(comm_, scheme, counted, false, taken.count());
  }

  // Every rank compares its own result, for all draw the same numbers.
  void check(host_entries const& found, std::int64_t step, std::string const& text) {
    together("verification", oktopk::fault::damaged_message, [&] {
      host_entries const expected = sum_of(source_, comm_.size(), step);
      auto const width = static_cast<std::size_t>(source_.width);
      std::size_t at = 0;
      for (std::size_t i = 0; i < found.indices.size(); ++i) {
        bool const is_there = at < expected.indices.size() && expected.indices[at] == found.indices[i];
        for (std::size_t j = 0; j < width; ++j) {
          if (found.values[i * width + j] != (is_there ? expected.values[at * width + j] : 0)) {
            throw local_fault(text + ", step " + std::to_string(step) + ": the sum at index " +
                              std::to_string(found.indices[i]) + " is wrong");
          }
        }
        at += is_there ? 1U : 0U;
      }
      if (at != expected.indices.size()) {
        throw local_fault(text + ", step " + std::to_string(step) + ": the sum at index " +
                          std::to_string(expected.indices[at]) + " is missing");
      }
    });
  }

  Comm comm_;
  options const& asked_;
  std::string const& note_;
  space exec_;
  entries_source source_;
  std::vector<measurement> rows_;
};

} // namespace oktopk_bench
