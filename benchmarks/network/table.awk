# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# awk -f ../shared/rows.awk -f table.awk -v rate=1gbit FILE: the rows of oktopk_bench's --csv as one table, a line per algorithm.

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
    against = "dense" in rows ? sprintf("%.2f x", median(seconds, "dense") / middle) : "-"
    printf line, name, sprintf("%.5f", middle), sprintf("%.5f", slowest(seconds, name)), \
      sprintf("%.5f", median(selection, name)), sprintf("%.5f", through(name) * 32 / bits_per_second(rate)), against, \
      sprintf("%.0f", sent[name]), messages[name]
  }
  print ""
  print "Times are of the whole iteration, selection included; wire time is what the most words through one link take"
  print "at its rate. Words and messages: the most of any rank and iteration; of dense the least that any scheme sends."
}
