// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "report.hpp"

#include "output_file.hpp"

#include <array>
#include <cstdio>
#include <utility>

namespace fashion {

namespace {

template <class... Arguments>
std::string format(char const* pattern, Arguments... arguments) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(), pattern, arguments...);
  return text.data();
}

long long wide(std::int64_t x) {
  return x;
}

} // namespace

report::report(options const& how, run_facts facts)
    : how_(how), facts_(std::move(facts)),
      csv_("epoch,loss,accuracy,compute_seconds,selection_seconds,communication_seconds,"
           "words_per_iteration_mean,words_per_iteration_max,lower_bound_words,bound_words\n") {
}

void report::heading() const {
  std::printf("%s on %d rank(s): %lld parameters", facts_.algorithm.c_str(), facts_.ranks, wide(facts_.length));
  if (facts_.selects) {
    std::printf(", k = %lld (density %g)", wide(facts_.k), how_.density);
  }
  std::printf(", batch %d x %lld, learning rate %g, seed %lld\n", facts_.ranks, wide(how_.batch), how_.learning_rate,
              wide(how_.seed));
  std::printf("                   |       seconds, mean of the ranks       | words sent per rank and iteration\n");
  std::printf("epoch  loss  test  | computation  selection  communication  |      mean       max  %10s  %10s\n",
              facts_.selects ? "2k(P-1)/P" : "2n(P-1)/P", "bound");
  std::fflush(stdout);
}

void report::epoch(std::int64_t number, measurements const& of_ranks, double accuracy) {
  whole_.add(of_ranks);
  epochs_ = number;
  accuracy_ = accuracy;
  loss_ = of_ranks.mean_loss();
  std::printf("%5lld %.3f %5.2f %% | %11.2f  %9.2f  %13.2f  | %9.0f %9.0f  %10.0f  %10.0f\n", wide(number), loss_,
              100 * accuracy, of_ranks.compute_seconds, of_ranks.selection_seconds, of_ranks.communication_seconds,
              of_ranks.mean_words(), of_ranks.most_words, facts_.lower_bound_words, of_ranks.bound_words);
  std::fflush(stdout);
  csv_ += format("%lld,%.6f,%.4f,%.4f,%.4f,%.4f,%.1f,%.0f,%.1f,%.1f\n", wide(number), loss_, accuracy,
                 of_ranks.compute_seconds, of_ranks.selection_seconds, of_ranks.communication_seconds,
                 of_ranks.mean_words(), of_ranks.most_words, facts_.lower_bound_words, of_ranks.bound_words);
}

void report::close(double total_seconds) const {
  std::printf("%.1f s in all, the test after each epoch included", total_seconds);
  if (whole_.modelled) {
    std::printf("; words are the least that MPI's allreduce can send, for its messages cannot be counted");
  } else if (whole_.over_bound == 0) {
    std::printf("; no rank sent more than the bound in any of %lld iterations", wide(whole_.iterations));
  } else {
    std::printf("; in %lld of %lld calls a rank sent more than the bound", wide(whole_.over_bound),
                wide(whole_.iterations * facts_.ranks));
  }
  std::printf("\n");
  std::fflush(stdout);
  if (!how_.csv.empty()) {
    write_whole(how_.csv, csv_);
  }
  if (!how_.summary.empty()) {
    write_whole(how_.summary, summary(total_seconds));
  }
}

std::string report::summary(double total_seconds) const {
  return format("algorithm=%s ranks=%d epochs=%lld accuracy=%.4f loss=%.4f ", facts_.algorithm.c_str(), facts_.ranks,
                wide(epochs_), accuracy_, loss_) +
         format("words_per_iteration_mean=%.0f words_per_iteration_max=%.0f lower_bound_words=%.0f "
                "bound_words=%.0f ",
                whole_.mean_words(), whole_.most_words, facts_.lower_bound_words, whole_.bound_words) +
         format("compute_seconds=%.2f selection_seconds=%.2f communication_seconds=%.2f total_seconds=%.2f ",
                whole_.compute_seconds, whole_.selection_seconds, whole_.communication_seconds, total_seconds) +
         format("iterations=%lld calls_over_bound=%lld\n", wide(whole_.iterations), wide(whole_.over_bound));
}

} // namespace fashion
