/* SPDX-FileCopyrightText: 2026 The oktopk authors */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The library from C: four processes fit a line to points of which each has its own share. Each step averages the gradient with
 * an algorithm that sends one of its two values; what is not sent is added to the next gradient, so nothing is lost. */

#define _XOPEN_SOURCE 700 /* mkdtemp */

#include <oktopk/engine.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4, POINTS = 250, STEPS = 150 };

/* Ends the process with the sentence of an error, which is the same on all ranks. */
static void check(int32_t code) {
  if (code != OKTOPK_ENGINE_OK) {
    fprintf(stderr, "%s: %s\n", oktopk_engine_fault_name(code), oktopk_engine_last_error());
    exit(EXIT_FAILURE);
  }
}

/* One rank: the slope and the height of y = 3 x - 1. */
static int train(int rank, char const* folder) {
  oktopk_engine_group_options ranks;
  oktopk_engine_averager_options how;
  oktopk_engine_group* group = NULL;
  oktopk_engine_averager* averager = NULL;
  float line[2] = {0, 0};
  double words = 0;

  oktopk_engine_group_defaults(&ranks);
  ranks.rank = rank;
  ranks.size = RANKS;
  ranks.folder = folder; /* where the ranks meet; messages go over TCP */
  ranks.interface_name = "127.0.0.1";
  ranks.time_limit = 60;
  check(oktopk_engine_group_make(&ranks, &group));
  oktopk_engine_averager_defaults(&how);
  how.algorithm = "ok_topk(density=0.5)";
  check(oktopk_engine_averager_make(group, &how, &averager));

  for (int step = 0; step < STEPS; ++step) {
    oktopk_engine_arrival call;
    float gradient[2] = {0, 0};
    for (int i = 0; i < POINTS; ++i) {
      float const x = (float)(RANKS * i + rank) / (RANKS * POINTS);
      float const error = line[0] * x + line[1] - (3 * x - 1);
      gradient[0] += error * x / POINTS;
      gradient[1] += error / POINTS;
    }
    oktopk_engine_arrival_defaults(&call);
    call.key = "line";
    call.values = gradient;
    call.length = 2;
    call.element = OKTOPK_ENGINE_FLOAT32;
    check(oktopk_engine_average(averager, &call)); /* the gradient becomes the average */
    line[0] -= 0.9F * gradient[0];
    line[1] -= 0.9F * gradient[1];
  }
  check(oktopk_engine_words_sent(averager, &words));
  if (rank == 0) {
    printf("y = %.2f x %+.2f after %d steps of %d ranks, each sent %.0f words\n", (double)line[0], (double)line[1],
           (int)STEPS, (int)RANKS, words);
  }
  oktopk_engine_averager_free(averager);
  oktopk_engine_group_free(group);
  return line[0] > 2.95F && line[0] < 3.05F && line[1] > -1.05F && line[1] < -0.95F ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(void) {
  char folder[4096];
  char const* temporary = getenv("TMPDIR");
  int result = EXIT_SUCCESS;
  snprintf(folder, sizeof folder, "%s/oktopk_XXXXXX", temporary != NULL ? temporary : P_tmpdir);
  if (mkdtemp(folder) == NULL) {
    perror(folder);
    return EXIT_FAILURE;
  }
  for (int rank = 0; rank < RANKS; ++rank) {
    if (fork() == 0) { /* before the engine is used: it has threads */
      exit(train(rank, folder));
    }
  }
  for (int rank = 0; rank < RANKS; ++rank) {
    int status = 1;
    if (wait(&status) < 0 || status != 0) {
      result = EXIT_FAILURE;
    }
  }
  rmdir(folder);
  return result;
}
