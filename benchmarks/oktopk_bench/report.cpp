// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

namespace oktopk_bench {
namespace {

std::string with_format(char const* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::size_t const half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

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
  return median(values);
}

std::string ratio(double value, double to, char const* format = "%.2f") {
  return to > 0 ? with_format(format, value / to) : "-";
}

// The mean over steps of a figure of the comparison with the dense sum.
std::string mean_quality(std::span<measurement const> rows, double update_quality::*field) {
  double sum = 0;
  for (measurement const& row : rows) {
    sum += (*row.quality).*field;
  }
  return with_format("%.4f", sum / static_cast<double>(rows.size()));
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
                                with_format("%.3f", 1e3 * median_of(rows, &measurement::seconds)),
                                with_format("%.3f", 1e3 * median_of(rows, &measurement::select_seconds)),
                                words_text(sent) + (first.words_are_a_floor ? "*" : ""),
                                words_text(largest(rows, &measurement::words_received)),
                                std::to_string(largest(rows, &measurement::messages_sent)),
                                ratio(sent, least),
                                words_text(std::floor(bound)),
                                ratio(sent, bound),
                                std::to_string(largest(rows, &measurement::local_selected)),
                                std::to_string(largest(rows, &measurement::global_selected)),
                                imbalance > 0 ? with_format("%.3f", imbalance) : "-"};
  if (first.quality) {
    auto const most = static_cast<double>(largest(rows, &measurement::global_selected));
    line.push_back(ratio(most, static_cast<double>(first.length), "%.4f"));
    line.push_back(mean_quality(rows, &update_quality::xi));
    line.push_back(mean_quality(rows, &update_quality::captured));
    line.push_back(mean_quality(rows, &update_quality::captured_by_top_k));
  }
  return line;
}

} // namespace

std::string words_text(double words) {
  return with_format(words == std::floor(words) ? "%.0f" : "%.2f", words);
}

std::string csv_text(std::span<measurement const> rows) {
  std::ostringstream text;
  auto const share = [](double value) { return with_format("%.9g", value); };
  text << "algorithm,ranks,length,k,step,seconds,select_seconds,words_sent_max,words_received_max,messages_sent_max,"
          "local_selected_max,global_selected,bound_words,words_are_a_floor,"
          "own_seconds,own_select_seconds,output_density,xi,captured,captured_by_top_k\n";
  for (measurement const& row : rows) {
    text << row.algorithm << ',' << row.ranks << ',' << row.length << ',' << row.k << ',' << row.step << ','
         << with_format("%.9g", row.seconds) << ',' << with_format("%.9g", row.select_seconds) << ','
         << words_text(row.words_sent) << ',' << words_text(row.words_received) << ',' << row.messages_sent << ','
         << row.local_selected << ',' << row.global_selected << ',' << words_text(row.bound_words) << ','
         << (row.words_are_a_floor ? 1 : 0) << ',' << with_format("%.9g", row.own_seconds) << ','
         << with_format("%.9g", row.own_select_seconds) << ',' << share(row.output_density()) << ',';
    if (row.quality) {
      text << share(row.quality->xi) << ',' << share(row.quality->captured) << ','
           << share(row.quality->captured_by_top_k);
    } else {
      text << ",,";
    }
    text << '\n';
  }
  return text.str();
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
      std::string const pad(widths[column] - line[column].size(), ' ');
      text += column == 0 ? line[column] + pad : "  " + pad + line[column];
    }
    text += '\n';
  }
  if (std::any_of(rows.begin(), rows.end(), [](measurement const& row) { return row.words_are_a_floor; })) {
    text += "* not counted: the least that any algorithm sends, since the communicator's own hides its messages\n";
  }
  return text;
}

} // namespace oktopk_bench
