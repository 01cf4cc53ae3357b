/* SPDX-FileCopyrightText: 2026 The oktopk authors */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** @file
 * Averages of tensors over ranks, with sparse allreduces and error feedback, for C and for whatever calls C: the
 * library liboktopk_engine, CMake target oktopk::engine, pkg-config oktopk_engine.
 *
 * A *group* is the ranks that average together: processes, also on several machines, or threads of a process, which are
 * connected by TCP. An *averager* on it has residuals of tensors, and averages values that `oktopk_engine_arrive`
 * brings. It works on a thread of the group, so a call that brings values returns at once, and tells by a callback when
 * they are averages.
 *
 * Collective functions are called on all ranks of a group, in the same order, with arguments that fit together; the
 * order of calls counts, not their time. Values lie one after the other in memory of the host, and those for the engine
 * of a device in memory of that device; all else is in memory of the host. A *word* is 4 bytes.
 *
 * liboktopk_engine_cuda and liboktopk_engine_hip are the same engine for a device, whose kernels average: sums are of
 * float32, `oktopk_engine_algorithms` lists what they have, and states of host and device are the same bytes. A process
 * has one device. Work of the program on values has ended when they are brought; `done` is called when ours has. Our work
 * is on streams of our own, which do not wait for the default one.
 *
 * Every function that can fail returns a code of `oktopk_engine_fault`, 0 where all is well, and
 * `oktopk_engine_last_error` has the sentence. An error of a collective function is on every rank, with the same
 * sentence, which names the rank and the place of what is wrong, and residuals are as before. Only after
 * OKTOPK_ENGINE_COMMUNICATION, _TIMED_OUT, _ABANDONED, _DAMAGED_MESSAGE and _DEADLOCK the group cannot be used any
 * more. An argument that is a null pointer and must not be one is OKTOPK_ENGINE_OPTION_OUT_OF_RANGE on this rank alone.
 *
 * Any thread may call any function, but those of one group one at a time: order is what the ranks agree on. Functions
 * that wait must not be called in a callback of the engine. A process that was forked after the first use of the engine
 * gets OKTOPK_ENGINE_BAD_STATE: fork before, or start processes anew.
 *
 * Structures of options begin with `struct_size`: sizeof(the structure) of the caller's header. An engine that is newer
 * takes the defaults for the members behind it; one that is older refuses a structure that is larger than its own.
 * Texts end with 0 and are UTF-8. What is passed in may be freed when the function returns, unless its comment says
 * otherwise.
 *
 * The library has all of oktopk inside and shows nothing else than the functions of this header. Before Kokkos 4.4 a
 * program that uses the same shared Kokkos itself does not do so while averages are under way. */

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OKTOPK_ENGINE_API __attribute__((visibility("default")))
#else
#define OKTOPK_ENGINE_API
#endif

/** The version of this interface. It changes only where a caller of the last one would no longer work. */
#define OKTOPK_ENGINE_ABI 1

/** What went wrong; the numbers do not change. Sentences tell the rest. */
enum oktopk_engine_fault {
  OKTOPK_ENGINE_OK = 0,
  OKTOPK_ENGINE_LENGTH_MISMATCH = 1,      /**< values of another length than those of the tensor */
  OKTOPK_ENGINE_K_OUT_OF_RANGE = 2,       /**< of the text of an algorithm */
  OKTOPK_ENGINE_DENSITY_OUT_OF_RANGE = 3, /**< not in (0, 1] */
  OKTOPK_ENGINE_OPTION_OUT_OF_RANGE = 4,  /**< any other argument, or a name that is not known */
  OKTOPK_ENGINE_INDEX_OVERFLOW = 5,       /**< more values than 32-bit indices can name */
  OKTOPK_ENGINE_NOT_CONTIGUOUS = 6,
  OKTOPK_ENGINE_NON_FINITE = 7,     /**< NaN or infinity in some rank's values, or a sum that overflows */
  OKTOPK_ENGINE_RANKS_DISAGREE = 8, /**< arguments that differ between ranks */
  OKTOPK_ENGINE_BAD_STATE = 9,      /**< a saved state that does not fit, an engine that has ended, a forked process */
  OKTOPK_ENGINE_COMMUNICATION = 10,
  OKTOPK_ENGINE_DEADLOCK = 11,
  OKTOPK_ENGINE_BAD_FILE = 12,  /**< a saved state that is cut short, or none */
  OKTOPK_ENGINE_TIMED_OUT = 13, /**< a wait beyond the limit; the sentence names who did not answer */
  OKTOPK_ENGINE_ABANDONED = 14, /**< another rank has given up */
  OKTOPK_ENGINE_DAMAGED_MESSAGE = 15,
  OKTOPK_ENGINE_CALLER_FAILED = 16, /**< anything else, memory that is missing included */
  OKTOPK_ENGINE_NOT_ASCENDING = 17,
  OKTOPK_ENGINE_INDEX_OUT_OF_RANGE = 18,
  OKTOPK_ENGINE_REPEATED_INDEX = 19, /**< though the rank promised that none is */
  OKTOPK_ENGINE_SIZE_MISMATCH = 20   /**< values that are not as many as their indices take */
};

/** Types of values. An averager sums float32 and float64; values of 16 bits are widened before, and narrowed behind. A sum of
 * sparse vectors takes all but those of 16 bits. */
enum oktopk_engine_element {
  OKTOPK_ENGINE_FLOAT32 = 0,
  OKTOPK_ENGINE_FLOAT64 = 1,
  OKTOPK_ENGINE_FLOAT16 = 2, /**< IEEE 754 binary16 */
  OKTOPK_ENGINE_BFLOAT16 = 3,
  OKTOPK_ENGINE_INT32 = 4,
  OKTOPK_ENGINE_INT64 = 5,
  OKTOPK_ENGINE_COMPLEX64 = 6, /**< two float32: the real part and the imaginary one */
  OKTOPK_ENGINE_COMPLEX128 = 7 /**< two float64 */
};

/** What a step gives in which the values of a rank are not finite. */
enum oktopk_engine_on_non_finite {
  OKTOPK_ENGINE_GIVES_ERROR = 0,
  OKTOPK_ENGINE_GIVES_ZEROS = 1, /**< the step is skipped: no error, residuals as before, and all its values are 0 */
  OKTOPK_ENGINE_GIVES_INFINITIES = 2 /**< the same with infinities, as scalers of a loss expect */
};

typedef struct oktopk_engine_group oktopk_engine_group;
typedef struct oktopk_engine_averager oktopk_engine_averager;
typedef struct oktopk_engine_blob oktopk_engine_blob;
typedef struct oktopk_engine_entries oktopk_engine_entries;

/* ---- The engine ---- */

/** OKTOPK_ENGINE_ABI of the library, to be compared with that of the header. Never fails. */
OKTOPK_ENGINE_API int32_t oktopk_engine_abi(void);

/** The version of oktopk, such as "0.2.0". The text lives as long as the program. */
OKTOPK_ENGINE_API char const* oktopk_engine_version(void);

/** The sentence of the last function that has failed on this thread; empty where none has. The engine's, until the next
 * function fails on this thread. */
OKTOPK_ENGINE_API char const* oktopk_engine_last_error(void);

/** The name of a fault, such as "non_finite"; "unknown" for another number. The text lives as long as the program. */
OKTOPK_ENGINE_API char const* oktopk_engine_fault_name(int32_t code);

/** Where this library averages: "host", "cuda" or "hip". The text lives as long as the program. */
OKTOPK_ENGINE_API char const* oktopk_engine_backend(void);

/** Starts the engine, which the first group does otherwise: its thread, and Kokkos, unless the program has initialised
 * that. On a device it takes that of the calling thread. Not collective. */
OKTOPK_ENGINE_API int32_t oktopk_engine_initialize(void);

/** The same on a device, by its number; -1 is the host, for the engine of the host. Not collective. The number may be
 * another one on each rank. OKTOPK_ENGINE_OPTION_OUT_OF_RANGE where there is no device of this number, and
 * OKTOPK_ENGINE_BAD_STATE where there is none at all, where it cannot be started, or where the engine runs on another
 * one. The first two start nothing, so that another device may be tried. */
OKTOPK_ENGINE_API int32_t oktopk_engine_initialize_on(int32_t device);

/** Ends what is under way, and all averagers and groups of the process: whatever is called from then on, but to free
 * them, is OKTOPK_ENGINE_BAD_STATE. Waits for calls under way, up to their time limits. Not collective; a program need
 * not call it, unless its callbacks must not be called any more, or it has initialised Kokkos itself, and is about to
 * finalize it. Kokkos is finalized at the exit of the process where the engine has initialised it. */
OKTOPK_ENGINE_API int32_t oktopk_engine_finalize(void);

/** Calls `each` with the name of each algorithm and a line about it; the texts live until `each` returns. */
OKTOPK_ENGINE_API int32_t oktopk_engine_algorithms(void (*each)(void* user, char const* name, char const* about),
                                                   void* user);

/* ---- Groups ---- */

/** The ranks of a group, and how this one finds the others. */
typedef struct oktopk_engine_group_options {
  size_t struct_size;
  int32_t rank;     /**< of this process or thread, in [0, size) */
  int32_t size;     /**< the number of ranks, the same on all; one alone needs neither a folder nor a store */
  char const* name; /**< the same on all ranks, another one for each group of a folder or store; null: "oktopk" */

  /** Where the ranks meet: a folder that all of them see, and that has no files of an earlier group of the name; or
   * null, and `set` and `get`. */
  char const* folder;
  /** Stores `size` bytes under a key, for all ranks. Called while the group is made, on the thread of the engine. Gives
   * 0, or another number where it has failed. */
  int32_t (*set)(void* store, char const* key, void const* bytes, size_t size);
  /** Waits until a key is there, and copies its bytes to `bytes`, which has room for `capacity`. Gives their number, or
   * a negative one where it has failed, or where they are more. */
  int64_t (*get)(void* store, char const* key, void* bytes, size_t capacity);
  void* store; /**< given to `set` and `get` */
  /** The network interface, such as "eth0", or several between commas, which messages use by turns; null: those of
   * GLOO_SOCKET_IFNAME, or that of the host's name. */
  char const* interface_name;

  double time_limit;  /**< seconds that a wait for other ranks may take; 0: no limit. The same on all ranks. */
  char const* caller; /**< of the engine, for sentences; null: "oktopk_engine". The same on all ranks. */
} oktopk_engine_group_options;

/** Defaults: one rank, 600 seconds, all else null. */
OKTOPK_ENGINE_API void oktopk_engine_group_defaults(oktopk_engine_group_options* options);

/** Makes a group. Collective: it waits until all ranks have come, up to the time limit. `made` gets a handle, which the
 * caller frees. The group has one thread on this rank, for its own and all its averagers' work in the order in which it
 * comes, so averages of two groups may end in different orders on different ranks. */
OKTOPK_ENGINE_API int32_t oktopk_engine_group_make(oktopk_engine_group_options const* options,
                                                   oktopk_engine_group** made);

/** Frees the handle; the group itself ends with its last averager, behind the calls under way. Null is taken, and does
 * nothing. Not collective, but ranks that wait for this one then get an error. */
OKTOPK_ENGINE_API void oktopk_engine_group_free(oktopk_engine_group* group);

/** Gives the group up: the waits of all ranks that hear of it end with OKTOPK_ENGINE_ABANDONED and this sentence. For
 * another thread, while calls are under way. Not collective. */
OKTOPK_ENGINE_API int32_t oktopk_engine_group_abort(oktopk_engine_group* group, char const* why);

/** -1 for a null pointer. */
OKTOPK_ENGINE_API int32_t oktopk_engine_group_rank(oktopk_engine_group const* group);
OKTOPK_ENGINE_API int32_t oktopk_engine_group_size(oktopk_engine_group const* group);

/** Another limit of waits, in seconds, from the next call on; 0: none. The same on all ranks; not collective. */
OKTOPK_ENGINE_API int32_t oktopk_engine_group_set_time_limit(oktopk_engine_group* group, double seconds);

/* ---- Sums of sparse vectors ---- */

/** What a rank gives to a sum of sparse vectors: entries, which are an index and a row of values each. `element`, `length`,
 * `width` and `subject` are the same on all ranks, `count` is not. */
typedef struct oktopk_engine_contribution {
  size_t struct_size;
  int64_t const* indices; /**< of the entries, in [0, length), in any order, also several times */
  void const* values;     /**< `width` of them for each entry, one row after the other, aligned for their type */
  int64_t count;          /**< of entries; 0 or more, and then both pointers may be null */
  int32_t element;        /**< type of the values, of oktopk_engine_element; none of 16 bits */
  int64_t length;         /**< of the vectors, in rows */
  int64_t width;          /**< values of a row, 1 or more */
  char const* subject;    /**< what is summed, in words that ranks compare; null: nothing more than the above */
  char const* fault;      /**< a sentence if this rank cannot take part: all ranks then get it as an error; else null */
} oktopk_engine_contribution;

/** Defaults: float32, rows of one value, all else null or 0. */
OKTOPK_ENGINE_API void oktopk_engine_contribution_defaults(oktopk_engine_contribution* contribution);

/** The sum of the sparse vectors of all ranks, without loss, as `oktopk::sparse_sum` forms it: every index that some rank has,
 * once, ascending, with the same bits on all ranks. Collective; waits, also for what averagers of the group have under way. `made`
 * gets an object that the caller frees.
 *
 * Values are of the host. An engine of a device has no such sums. Values of one rank with the same index are added first, in
 * their order. NaN and infinity are values like others, and sums of integers that overflow are the caller's affair.
 *
 * Costs 4 words in ceil(log2 P) messages in which ranks compare what they give, and what docs/sparse.md says. The group keeps
 * buffers for each type, length and width, of the last 64 of these: a dense array of the rows that this rank sums, which may be most of
 * the vector. Errors on every rank: an index outside, a type or size that there is none of, a vector that is larger than half the
 * memory of the machine, arguments that differ. No entry has been sent then, and the group can be used. */
OKTOPK_ENGINE_API int32_t oktopk_engine_sparse_sum(oktopk_engine_group* group,
                                                   oktopk_engine_contribution const* contribution,
                                                   oktopk_engine_entries** made);

/** The number of entries; 0 for a null pointer. */
OKTOPK_ENGINE_API int64_t oktopk_engine_entries_count(oktopk_engine_entries const* entries);
/** Of each entry, ascending; the object's. Null for a null pointer. */
OKTOPK_ENGINE_API int64_t const* oktopk_engine_entries_indices(oktopk_engine_entries const* entries);
/** A row for each entry, of the type that was given; the object's. Null for a null pointer. */
OKTOPK_ENGINE_API void const* oktopk_engine_entries_values(oktopk_engine_entries const* entries);
/** Null is taken, and does nothing. */
OKTOPK_ENGINE_API void oktopk_engine_entries_free(oktopk_engine_entries* entries);

/* ---- Averagers ---- */

/** What an averager does; the same on all ranks, but for `fault`. */
typedef struct oktopk_engine_averager_options {
  size_t struct_size;
  char const* algorithm;    /**< a text of the catalogue, "ok_topk(density=0.01)"; density 0.01 unless it has one */
  int32_t sums;             /**< OKTOPK_ENGINE_FLOAT32 or _FLOAT64: type of sums and residuals */
  int64_t tensor_count;     /**< 0: tensors come with their keys, and each call brings one */
  char const* const* names; /**< of the tensors, each another one; used in sentences, and by `load` */
  int64_t const* lengths;   /**< of the tensors, in values */

  double momentum;        /**< in [0, 1): of tensors before their residual (momentum correction) */
  int32_t nesterov;       /**< 0 or 1; needs a momentum */
  int32_t factor_masking; /**< 0 or 1: clears the velocity of entries that were sent */
  double clip_norm;       /**< the largest norm of this rank's values of a step; 0: not clipped */
  double residual_decay;  /**< in [0, 1]: the factor of the residual in each step; 1 keeps all */

  int32_t on_non_finite; /**< of oktopk_engine_on_non_finite */
  char const* fault;     /**< a sentence if this rank cannot take part: all ranks then get it as an error; else null */

  /** 1: residuals and averages are of directions, gradients over the root of their second moment, as AdamW takes them: its
   * step is then the learning rate times the average. Takes no momentum. Second moments are of rows and columns, the same
   * on all ranks, by a small dense sum in each call. */
  int32_t directions;
  double beta2;   /**< decay of the mean of squares, in [0, 1) */
  double epsilon; /**< beside the root of the second moment */
  /** The dimensions of all tensors, one after the other, as their values lie in memory: the first one counts rows. Null: each
   * has one, and a second moment for each value. */
  int64_t const* dimensions;
  int32_t const* dimension_counts; /**< of each tensor; null with `dimensions` */
} oktopk_engine_averager_options;

/** Defaults: "ok_topk", float32, tensors with keys, factor masking, residual_decay 1, errors, beta2 0.999, epsilon 1e-8, all
 * else 0. */
OKTOPK_ENGINE_API void oktopk_engine_averager_defaults(oktopk_engine_averager_options* options);

/** Makes an averager, with residuals of 0. Collective. `made` gets a handle, which the caller frees; it keeps the
 * group. Holds two vectors of the length of all tensors, and two more with momentum. Errors on every rank: a text, a
 * length or an option that is wrong on some rank, or that differs. */
OKTOPK_ENGINE_API int32_t oktopk_engine_averager_make(oktopk_engine_group* group,
                                                      oktopk_engine_averager_options const* options,
                                                      oktopk_engine_averager** made);

/** Frees the handle; the averager ends behind its calls under way, whose callbacks are called. Null is taken. Not
 * collective. */
OKTOPK_ENGINE_API void oktopk_engine_averager_free(oktopk_engine_averager* averager);

/** Of one tensor whose values lie in another order than in the call before: the i-th is that which was at from[i]. */
typedef struct oktopk_engine_reordering {
  int32_t tensor;
  int64_t const* from; /**< a permutation, of the tensor's length */
} oktopk_engine_reordering;

/** One call: values of tensors, one after the other, which become the averages over the ranks.
 *
 * A *step* is what fails, and is undone, together: a backward pass, whose first and last call are marked, or calls by
 * key, each first and last, of which all but the first one `continue`. */
typedef struct oktopk_engine_arrival {
  size_t struct_size;
  void* values;    /**< aligned for their type, where the engine averages; the engine's until `done` is called */
  int64_t length;  /**< of all of them; may be right without `values` where there is a `fault` */
  int32_t element; /**< their type, of oktopk_engine_element */

  int32_t const* tensors; /**< the tensors by their numbers, in the order of their values; null for a call by key */
  int64_t tensor_count;
  char const* key; /**< of a call by key: a new one adds a tensor of this length, others have the length of before */
  /** Of each tensor 1 if this rank has a gradient, else 0; null: of all. A tensor that no rank has is left out: values
   * and residual stay. Null on all ranks or on none. */
  int32_t const* used;
  oktopk_engine_reordering const* reordered; /**< null: none */
  int64_t reordered_count;

  char const* fault;   /**< a sentence if this rank's values cannot be used: the call fails on all ranks; else null */
  char const* subject; /**< the call, in words that ranks compare before its step; null: they do not */
  int32_t is_first;    /**< of its step */
  int32_t is_last;     /**< of its step */
  int32_t continues;   /**< with is_first: the step of the calls before it */
  double loss_scale;   /**< a factor of the values that residuals do not have; 1 for none */
  int32_t has_density; /**< 1: `density` holds from this step on */
  double density;      /**< in (0, 1]: the share of values that is selected */

  int32_t zero_on_error; /**< 1: the values are 0 where the call fails, so that who goes on applies nothing */
  /** Called once: the values are averages, or `code` is not 0 and `sentence` says why. The text lives until it returns.
   * On a second thread of the group, behind the callbacks of earlier calls, so it holds up no sum. Must not wait for
   * the engine; may start calls. Null: nobody hears of it. */
  void (*done)(void* user, int32_t code, char const* sentence);
  void* user; /**< given to `done` */

  /** Of a tensor that comes by a new key, with directions: its dimensions, as in the options; null: one. */
  int64_t const* dimensions;
  int32_t dimension_count;
} oktopk_engine_arrival;

/** Defaults: a step of one call, loss_scale 1, no fault, all else null or 0. */
OKTOPK_ENGINE_API void oktopk_engine_arrival_defaults(oktopk_engine_arrival* arrival);

/** Brings values, and returns at once. Collective. Where this function itself fails, nothing was started, and `done` is
 * not called; all else is told by `done`. */
OKTOPK_ENGINE_API int32_t oktopk_engine_arrive(oktopk_engine_averager* averager, oktopk_engine_arrival const* arrival);

/** The same, and waits: `done` and `user` are not used. Only for the last call of a step, since others may end with it.
 */
OKTOPK_ENGINE_API int32_t oktopk_engine_average(oktopk_engine_averager* averager, oktopk_engine_arrival const* arrival);

/** Waits until all calls that have come are done, and have called back. Not collective; errors of these calls are told
 * by their `done` alone. */
OKTOPK_ENGINE_API int32_t oktopk_engine_wait(oktopk_engine_averager* averager);

/** Notes that the backward pass of the last step has ended now, for the figures. Returns at once. Not collective. */
OKTOPK_ENGINE_API int32_t oktopk_engine_backward_ended(oktopk_engine_averager* averager);

/** Another density, in (0, 1], from the next step on. Collective, between steps; waits. */
OKTOPK_ENGINE_API int32_t oktopk_engine_set_density(oktopk_engine_averager* averager, double density);

/** Undoes the last step: residuals and velocities are as before it, for a program that throws its averages away.
 * Collective, between steps; waits. Nothing where that step has failed or was skipped. OKTOPK_ENGINE_BAD_STATE where
 * there is no step, or none since the last `undo` or `load`. */
OKTOPK_ENGINE_API int32_t oktopk_engine_undo(oktopk_engine_averager* averager);

/* ---- States ---- */

/** All that this rank carries to the next step, as bytes: those that `oktopk::save` writes of a `data_parallel`'s
 * state. In the middle of a step those of the state before it. `made` gets an object that the caller frees. Waits for
 * calls under way. Not collective. */
OKTOPK_ENGINE_API int32_t oktopk_engine_save(oktopk_engine_averager* averager, oktopk_engine_blob** made);

/** The same from before the last step, where `undo` goes back to; after a step that has failed, or was undone, that of
 * now. Not collective: for a program that gives up a group of which some ranks are gone, and goes on in another one. */
OKTOPK_ENGINE_API int32_t oktopk_engine_save_before_step(oktopk_engine_averager* averager, oktopk_engine_blob** made);

/** The bytes, which the blob owns; null and 0 for a null pointer. */
OKTOPK_ENGINE_API void const* oktopk_engine_blob_data(oktopk_engine_blob const* blob);
OKTOPK_ENGINE_API size_t oktopk_engine_blob_size(oktopk_engine_blob const* blob);
/** Null is taken, and does nothing. */
OKTOPK_ENGINE_API void oktopk_engine_blob_free(oktopk_engine_blob* blob);

/** Bytes of a saved state. */
typedef struct oktopk_engine_bytes {
  void const* data;
  size_t size;
} oktopk_engine_bytes;

/** What `load` continues from. */
typedef struct oktopk_engine_loading {
  size_t struct_size;
  oktopk_engine_bytes const* states; /**< this rank's, or those whose residuals add up; each of the same tensors */
  int64_t state_count;
  char const* const* keys; /**< the names or keys of the saved tensors, in their order */
  int64_t key_count;
  char const* fault; /**< a sentence if this rank has no state that fits: an error of all ranks; else null */
  /** 1: another number of ranks has saved, and `share` is the factor of the residuals, that number into the one of now;
   * 0 where `states` has one of a rank whose residual is not for this one. */
  int32_t has_share;
  double share;
  int32_t in_part;          /**< 1: takes what both have, by the names; other tensors begin with zeros */
  int32_t saved_by;         /**< the rank whose state it is; -1: not known, or several */
  int32_t steps_of_borders; /**< for so many steps the buckets are those of the state, whatever comes (DDP: 1) */
  int32_t has_density;      /**< 1: `density` had been set */
  double density;
  char const* called; /**< the name of this function for the program, in sentences; null: "load" */
} oktopk_engine_loading;

/** Defaults: no state, saved_by -1, steps_of_borders 1, all else null or 0. */
OKTOPK_ENGINE_API void oktopk_engine_loading_defaults(oktopk_engine_loading* loading);

/** Continues from saved states, to the bit. Collective; waits. Where a state does not fit on some rank, nothing has
 * changed on any. */
OKTOPK_ENGINE_API int32_t oktopk_engine_load(oktopk_engine_averager* averager, oktopk_engine_loading const* loading);

/* ---- Questions; not collective, and they wait for calls under way ---- */

/** Calls `each` with the name or key of each tensor, in the order of their numbers, and its length. */
OKTOPK_ENGINE_API int32_t oktopk_engine_tensors(oktopk_engine_averager* averager,
                                                void (*each)(void* user, char const* name, int64_t length), void* user);

/** Calls `each` with what runs in each bucket, such as "ok_topk, which is ok_topk: 10 of 1000 values". */
OKTOPK_ENGINE_API int32_t oktopk_engine_schemes(oktopk_engine_averager* averager,
                                                void (*each)(void* user, char const* text), void* user);

/** The Euclidean norm of this rank's residuals; reads all of them. Between steps. */
OKTOPK_ENGINE_API int32_t oktopk_engine_residual_norm(oktopk_engine_averager* averager, double* norm);

/** Words that this rank has sent for the averager. */
OKTOPK_ENGINE_API int32_t oktopk_engine_words_sent(oktopk_engine_averager* averager, double* words);

/** Figures of this rank; counts that may exceed 32 bits are whole numbers in a double. */
typedef struct oktopk_engine_figures {
  size_t struct_size;
  int64_t steps;       /**< of all time */
  int64_t skipped;     /**< of these */
  int32_t was_skipped; /**< the last one */
  int32_t ranks;
  int32_t buckets; /**< as they are now */
  double values;   /**< in the buckets */
  double selected; /**< of these, in a step */

  double words;            /**< that the last step has sent */
  double step_values;      /**< that have come in it */
  double seconds;          /**< of its calls: selection, messages and sums */
  double hidden_seconds;   /**< of these, behind the backward pass */
  double hideable_seconds; /**< that could have been */
} oktopk_engine_figures;

/** Fills in the members that lie in the first `struct_size` bytes, which the caller sets. */
OKTOPK_ENGINE_API int32_t oktopk_engine_last_step(oktopk_engine_averager* averager, oktopk_engine_figures* figures);

#ifdef __cplusplus
}
#endif
