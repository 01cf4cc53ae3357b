# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# awk -f table.awk -v rate=1gbit FILE: the rows of oktopk_bench's --csv as one table, a line per algorithm.

BEGIN {
  FS = ","
  bits_per_second["100mbit"] = 1e8
  bits_per_second["1gbit"] = 1e9
  bits_per_second["10gbit"] = 1e10
}

FNR == 1 {
  for (i = 1; i <= NF; i++) column[$i] = i
  next
}

{
  name = $column["algorithm"]
  if (!(name in rows)) names[++algorithms] = name
  row = ++rows[name]
  seconds[name, row] = $column["seconds"]
  selection[name, row] = $column["select_seconds"]
  keep_largest(sent, name, $column["words_sent_max"])
  keep_largest(received, name, $column["words_received_max"])
  keep_largest(messages, name, $column["messages_sent_max"])
}

function keep_largest(of, name, value) {
  if (!(name in of) || value + 0 > of[name] + 0) of[name] = value
}

# The median of values[name, 1 .. rows[name]].
function median(values, name,   sorted, count, i, j, x) {
  count = rows[name]
  for (i = 1; i <= count; i++) {
    x = values[name, i] + 0
    for (j = i - 1; j >= 1 && sorted[j] > x; j--) sorted[j + 1] = sorted[j]
    sorted[j + 1] = x
  }
  return count % 2 ? sorted[(count + 1) / 2] : (sorted[count / 2] + sorted[count / 2 + 1]) / 2
}

function slowest(values, name,   i, most) {
  for (i = 1; i <= rows[name]; i++) if (values[name, i] + 0 > most + 0) most = values[name, i]
  return most
}

END {
  line = "| %-18s | %12s | %9s | %11s | %9s | %13s | %10s | %8s |\n"
  printf line, "algorithm", "s, median", "slowest", "selection", "wire time", "against dense", "words sent", "messages"
  printf line, "------------------", "-----------:", "--------:", "----------:", "--------:", "------------:", \
    "---------:", "-------:"
  for (i = 1; i <= algorithms; i++) {
    name = names[i]
    middle = median(seconds, name)
    through = sent[name] + 0 > received[name] + 0 ? sent[name] : received[name]
    against = "dense" in rows ? sprintf("%.2f x", median(seconds, "dense") / middle) : "-"
    printf line, name, sprintf("%.5f", middle), sprintf("%.5f", slowest(seconds, name)), \
      sprintf("%.5f", median(selection, name)), sprintf("%.5f", through * 32 / bits_per_second[rate]), against, \
      sprintf("%.0f", sent[name]), messages[name]
  }
  print ""
  print "Times are of the whole iteration, selection included; wire time is what the most words through one link take"
  print "at its rate. Words and messages: the most of any rank and iteration; of dense the least that any scheme sends."
}
