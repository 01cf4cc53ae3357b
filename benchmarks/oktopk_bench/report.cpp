// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

namespace oktopk_bench {
namespace {

template <class Field>
auto largest(std::span<measurement const> rows, Field field) {
  auto result = rows.front().*field;
  for (measurement const& row : rows) {
    result = std::max(result, row.*field);
  }
  return result;
}

template <class Field>
double median_of(std::span<measurement const> rows, Field field) {
  std::vector<double> values;
  for (measurement const& row : rows) {
    values.push_back(row.*field);
  }
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// A field of a CSV file (RFC 4180).
std::string quoted(std::string const& text) {
  std::string field = "\"";
  for (char const c : text) {
    field += c == '"' ? "\"\"" : std::string(1, c);
  }
  return field + "\"";
}

std::string ratio(double value, double to, int digits = 2) {
  return to > 0 ? fmt::format("{:.{}f}", value / to, digits) : "-";
}

// The mean over steps of a figure of the comparison with the dense sum.
std::string mean_quality(std::span<measurement const> rows, double update_quality::*field) {
  double sum = 0;
  for (measurement const& row : rows) {
    sum += (*row.quality).*field;
  }
  return fmt::format("{:.4f}", sum / static_cast<double>(rows.size()));
}

std::vector<std::string> table_line(std::span<measurement const> rows) {
  measurement const& first = rows.front();
  auto const ranks = static_cast<double>(first.ranks);
  double const least = 2 * static_cast<double>(first.k) * (ranks - 1) / ranks;
  double const sent = largest(rows, &measurement::words_sent);
  double const bound = largest(rows, &measurement::bound_words);
  double const imbalance = largest(rows, &measurement::reduce_imbalance);
  std::vector<std::string> line{first.algorithm,
                                std::to_string(first.k),
                                fmt::format("{:.3f}", 1e3 * median_of(rows, &measurement::seconds)),
                                fmt::format("{:.3f}", 1e3 * median_of(rows, &measurement::select_seconds)),
                                words_text(sent) + (first.words_are_a_floor ? "*" : ""),
                                words_text(largest(rows, &measurement::words_received)),
                                std::to_string(largest(rows, &measurement::messages_sent)),
                                ratio(sent, least),
                                words_text(std::floor(bound)),
                                ratio(sent, bound),
                                std::to_string(largest(rows, &measurement::local_selected)),
                                std::to_string(largest(rows, &measurement::global_selected)),
                                imbalance > 0 ? fmt::format("{:.3f}", imbalance) : "-"};
  if (first.quality) {
    auto const most = static_cast<double>(largest(rows, &measurement::global_selected));
    line.push_back(ratio(most, static_cast<double>(first.length), 4));
    line.push_back(mean_quality(rows, &update_quality::xi));
    line.push_back(mean_quality(rows, &update_quality::captured));
    line.push_back(mean_quality(rows, &update_quality::captured_by_top_k));
  }
  return line;
}

} // namespace

std::string words_text(double words) {
  return fmt::format("{:.{}f}", words, words == std::floor(words) ? 0 : 2);
}

std::string csv_text(std::span<measurement const> rows) {
  std::string text =
      "algorithm,ranks,length,k,step,seconds,select_seconds,words_sent_max,words_received_max,messages_sent_max,"
      "local_selected_max,global_selected,bound_words,words_are_a_floor,own_seconds,own_select_seconds,output_density,"
      "xi,captured,captured_by_top_k\n";
  for (measurement const& row : rows) {
    text += fmt::format("{},{},{},{},{},{:.9g},{:.9g},{},{},{},{},{},{},{:d},{:.9g},{:.9g},{:.9g},",
                        quoted(row.algorithm), row.ranks, row.length, row.k, row.step, row.seconds, row.select_seconds,
                        words_text(row.words_sent), words_text(row.words_received), row.messages_sent,
                        row.local_selected, row.global_selected, words_text(row.bound_words), row.words_are_a_floor,
                        row.own_seconds, row.own_select_seconds, row.output_density());
    text += row.quality ? fmt::format("{:.9g},{:.9g},{:.9g}\n", row.quality->xi, row.quality->captured,
                                      row.quality->captured_by_top_k)
                        : ",,\n";
  }
  return text;
}

std::string heading_text(options const& asked, std::span<measurement const> rows, std::string const& input,
                         std::string const& where) {
  return fmt::format("oktopk_bench: {} rank{}, {}, {} values, {} step{} after {} of warm-up, {}{}; Kokkos {}\n",
                     rows.front().ranks, rows.front().ranks == 1 ? "" : "s", input, rows.front().length,
                     asked.measured_steps(), asked.measured_steps() == 1 ? "" : "s", asked.warmup,
                     asked.checked ? "messages checked, " : "",
                     asked.verify ? "every result verified" : "results not verified", where);
}

std::string table_text(std::span<measurement const> rows) {
  std::vector<std::vector<std::string>> lines{{"algorithm", "k", "ms", "select ms", "words sent", "received",
                                               "messages", "/2k(P-1)/P", "bound", "/bound", "local", "global",
                                               "reduce max/mean"}};
  if (!rows.empty() && rows.front().quality) {
    lines.front().insert(lines.front().end(), {"density", "xi", "captured", "by top k"});
  }
  for (auto begin = rows.begin(); begin != rows.end();) {
    auto const end =
        std::find_if(begin, rows.end(), [&](measurement const& row) { return row.algorithm != begin->algorithm; });
    lines.push_back(table_line({begin, end}));
    begin = end;
  }
  std::vector<std::size_t> widths(lines.front().size());
  for (auto const& line : lines) {
    for (std::size_t column = 0; column < line.size(); ++column) {
      widths[column] = std::max(widths[column], line[column].size());
    }
  }
  std::string text;
  for (auto const& line : lines) {
    for (std::size_t column = 0; column < line.size(); ++column) {
      text += column == 0 ? fmt::format("{:<{}}", line[0], widths[0])
                          : fmt::format("  {:>{}}", line[column], widths[column]);
    }
    text += '\n';
  }
  if (std::any_of(rows.begin(), rows.end(), [](measurement const& row) { return row.words_are_a_floor; })) {
    text += "* not counted: the least that any algorithm sends, since the communicator's own hides its messages\n";
  }
  return text;
}

std::string control_text(std::span<measurement const> rows) {
  constexpr std::array<std::string_view, oktopk::phase_count> carries{"sizes and faults",
                                                                      "sums of counts for regions",
                                                                      "histograms and candidates",
                                                                      "entries to owners, and headers",
                                                                      "entries that move, and their sizes",
                                                                      "entries to all, and their sizes"};
  std::string text = "\nsent in the last step, by the rank that sends most for the purpose:\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i + 1 < rows.size() && rows[i + 1].algorithm == rows[i].algorithm) {
      continue;
    }
    text += rows[i].algorithm + "\n";
    for (std::size_t use = 0; use < carries.size(); ++use) {
      auto const [messages, words] = rows[i].by_purpose[use];
      text += fmt::format("  {:<9}  {:>6.0f} messages  {:>12} words  {}\n", name(static_cast<oktopk::phase>(use)),
                          messages, words_text(words), carries[use]);
    }
  }
  return text;
}

} // namespace oktopk_bench
