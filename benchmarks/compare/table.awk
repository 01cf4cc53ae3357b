# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# awk -f ../shared/rows.awk -f table.awk -v csv=FILE -v k=K [-v turns=1] [-v rate=RATE -v latency=US] ROWS: what
# oktopk_bench --quality measured as one table, a line per scheme, and the same as a CSV file. turns: the ranks took
# turns on one thread. rate, latency: of a network whose time is to be added.

FNR > 1 {
  ranks = $column["ranks"]
  length_of = $column["length"]
  own[name, row] = $column["own_seconds"]
  own_selection[name, row] = $column["own_select_seconds"]
  if (rate != "") {
    words = $column["words_sent_max"]
    if ($column["words_received_max"] + 0 > words + 0) words = $column["words_received_max"]
    wires[name] += words * 32 / bits_per_second(rate) + $column["messages_sent_max"] * latency / 1e6
  }
  floor[name] = $column["words_are_a_floor"]
  density[name] += $column["output_density"]
  xi[name] += $column["xi"]
  captured[name] += $column["captured"]
  best += $column["captured_by_top_k"]
  all++
}

function work_out(name,   whole, part, wire) {
  whole = turns ? median(own, name) : median(seconds, name)
  part = turns ? median(own_selection, name) : median(selection, name)
  if (part > whole) part = whole
  wire = wires[name] / rows[name]
  chosen[name] = part
  exchanged[name] = whole - part + wire
  total[name] = whole + wire
}

function dashes(count,   text) {
  while (length(text) < count) text = text "-"
  return text
}

END {
  if (all == 0) exit 1
  least = 2 * k * (ranks - 1) / ranks
  for (i = 1; i <= algorithms; i++) work_out(names[i])
  widest = length("dense_rabenseifner")
  for (i = 1; i <= algorithms; i++) if (length(names[i]) > widest) widest = length(names[i])
  line = "| %-" widest "s | %12s | %10s | %8s | %9s | %9s | %9s | %14s | %8s | %7s | %8s |\n"
  printf line, "scheme", "words sent", "/2k(P-1)/P", "messages", "selection", "the rest", "in all", "against dense", \
    "density", "xi", "captured"
  printf line, dashes(widest), "-----------:", "---------:", "-------:", "--------:", "--------:", "--------:", \
    "-------------:", "-------:", "------:", "-------:"
  print "algorithm,ranks,length,k,words_sent,words_are_a_floor,lower_bound_ratio,messages,selection_seconds," \
    "communication_seconds,seconds,speedup_over_dense,output_density,xi,captured,captured_by_top_k" > csv
  for (i = 1; i <= algorithms; i++) {
    name = names[i]
    of = rows[name]
    speedup = ("dense" in rows) && total[name] > 0 ? total["dense"] / total[name] : ""
    against = speedup == "" ? "-" : sprintf("%.2f x", speedup)
    if (speedup != "" && name != "dense" && speedup < 0.995) {
      against = sprintf("%.2f x SLOWER", speedup)
      slower++
    }
    ratio = least > 0 ? sprintf("%.2f", sent[name] / least) : "-"
    printf line, name, sprintf("%.0f%s", sent[name], (floor[name] ? "*" : "")), ratio, messages[name], \
      sprintf("%.4f", 1e3 * chosen[name]), sprintf("%.4f", 1e3 * exchanged[name]), sprintf("%.4f", 1e3 * total[name]), \
      against, sprintf("%.4f", density[name] / of), sprintf("%.4f", xi[name] / of), sprintf("%.4f", captured[name] / of)
    printf "%s,%d,%d,%d,%s,%d,%s,%d,%.9g,%.9g,%.9g,%s,%.9g,%.9g,%.9g,%.9g\n", name, ranks, length_of, k, sent[name], \
      floor[name], (least > 0 ? sent[name] / least : ""), messages[name], chosen[name], exchanged[name], total[name], \
      speedup, density[name] / of, xi[name] / of, captured[name] / of, best / all > csv
    floors += floor[name]
  }
  close(csv)
  print ""
  print "Words and messages: the most that any rank sends in any step. Times: milliseconds of a rank per iteration, medians."
  if (turns) {
    printf "The ranks took turns in one process; a rank's time is without the others' turns, "
    if (rate == "") print "and without any network: --rate adds one,\nand --mpi measures on what there is."
    else printf "and with the\ntime that the words of a step take at %s, and %s us a message.\n", rate, latency
  }
  printf "Density: of the update. xi: its distance from the true top k of the dense sum, as in the paper's Assumption 1.\n"
  printf "Captured: the share of the dense sum's squared norm; the true top k has %.4f.\n", best / all
  if (floors) print "* not counted: the least that any algorithm sends, since the communicator's own hides its messages"
  if (slower) printf "%d of %d schemes are SLOWER than dense here.\n", slower, algorithms - 1
}
