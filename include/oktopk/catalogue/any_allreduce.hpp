// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/concept.hpp>
#include <oktopk/comm/agreement.hpp>
#include <oktopk/comm/any_communicator.hpp>
#include <oktopk/core/checkpoint.hpp>
#include <oktopk/core/version.hpp>

#include <optional>
#include <sstream>
#include <utility>

namespace oktopk {

namespace detail {

using compiled_for = compiled_with<containers_in_use, strings_in_use, KOKKOS_VERSION>;

} // namespace detail

/// The size of a selection; dense schemes take the length only, and a text may have its own density or k.
struct gradient_size {
  detail::element_count length = 0;         ///< of the accumulators
  std::optional<detail::element_count> k{}; ///< entries to select, in [0, length]; this or density
  std::optional<double> density{};          ///< k / length, in (0, 1]; k is rounded, and at least 1
};

namespace detail {

/// The state of an `any_allreduce`, a plain value: the checkpoint (`save`) of the state of the algorithm inside, and
/// the policies that this state belongs to.
struct any_state {
  std::vector<char> policies;
  std::vector<char> checkpoint;

  static constexpr bool of_any_allreduce = true; ///< for `for_other_ranks`

  bool operator==(any_state const&) const = default;

  static std::string type_name() { return "any_allreduce"; }

  template <class State, class Visit>
  static void each_part(State& state, Visit& visit) {
    visit(state.policies);
    visit(state.checkpoint);
  }
};

/// One option of an algorithm of the catalogue.
struct listed_option {
  std::string key;
  std::string value; ///< by default
  std::string about;
  std::vector<std::string> goes_with{}; ///< choices that have this option, such as `format=packed`; none if all have it
};

/// The names of an algorithm.
struct any_description {
  std::string text;     ///< the text that asked for the algorithm; its own name if empty
  std::string policies; ///< that its state depends on in addition to the state's type
};

} // namespace detail

/// A gradient allreduce whose type is chosen at run time: one virtual call per call of the algorithm inside.
///
/// Models `gradient_allreduce`, so `sgd`, `save` and `load` take it. Owns the algorithm. Results, messages and errors
/// are those of the algorithm. Can be moved, but not while an `sgd` refers to it.
template <execution_space E, communicator Comm = any_communicator, gradient_value Value = float,
          gradient_index Index = std::int32_t>
class any_allreduce {
public:
  using execution_space = E;
  using communicator_type = Comm;
  using index_type = Index;
  using value_type = Value;
  using memory_space = typename E::memory_space;
  using state_type = detail::any_state;
  using update_type = sparse_update<Index, Value, memory_space>;

  /// Makes an `Allreduce` inside. Collective; throws the errors of its constructor.
  template <gradient_allreduce Allreduce>
    requires std::same_as<typename Allreduce::update_type, update_type> &&
                 detail::state_of_parts<typename Allreduce::state_type>
  any_allreduce(std::in_place_type_t<Allreduce>, E const& exec, Comm const& comm,
                typename Allreduce::options const& how, detail::any_description description = {})
      : inside_(std::make_unique<holder<Allreduce>>(exec, comm, how)), description_(std::move(description)) {
    if (description_.text.empty()) {
      description_.text = std::string(name());
    }
  }

  std::int64_t length() const { return inside_->length(); }
  std::int64_t k() const { return inside_->k(); }
  /// The algorithm's own name, as in its errors.
  std::string_view name() const { return inside_->name(); }
  /// The text that asked for the algorithm, with policies and options.
  std::string const& text() const { return description_.text; }
  /// The algorithm's own explanation of what runs; the text if it has no `explain`.
  std::string explain() const {
    std::string told = inside_->explain(false);
    return told.empty() ? text() : told;
  }
  /// The `table` of an `automatic`; empty for other algorithms.
  std::string table() const { return inside_->explain(true); }
  double bound_words() const { return inside_->bound_words(); }
  allreduce_promises const& promises() const { return inside_->promises; }
  call_statistics const& last_call() const { return inside_->last_call(); }
  E const& execution() const { return inside_->execution(); }
  Comm& comm() { return inside_->comm(); }

  /// Calls the algorithm's own `set_k`. An `error` (k_out_of_range) on every rank if it has none. Collective.
  void set_k(detail::element_count k) { inside_->set_k(k); }

  /// Valid until the next call of `state`. Writes a checkpoint, so it costs more than that of a typed algorithm.
  state_type const& state() const {
    state_.policies.assign(description_.policies.begin(), description_.policies.end());
    state_.checkpoint = inside_->checkpoint();
    return state_;
  }

  /// Continues from a saved state. Collective. Throws `bad_state` on every rank if the state of some rank is damaged,
  /// or is of another algorithm or of other policies, and throws the errors of the algorithm's own `restore`.
  void restore(state_type const& saved) { inside_->restore(saved.checkpoint, fault_of(saved)); }

  /// Goes back to the state of a new object. Collective.
  void reset() { inside_->reset(); }

  /// A state from which another number of ranks can continue; see `oktopk::for_other_ranks`. Not collective. Throws
  /// `bad_state` if the state is damaged, or is of another algorithm or of other policies.
  state_type for_other_ranks(state_type saved) const {
    if (std::string const fault = fault_of(saved); !fault.empty()) {
      throw error(fault::bad_state, fault);
    }
    saved.checkpoint = inside_->for_other_ranks(saved.checkpoint);
    return saved;
  }

  /// As in `gradient_allreduce`.
  void fail(detail::fault_report const& why) { inside_->fail(why); }

  /// One iteration. Collective. The accumulator is only read.
  template <accumulator_input<Index, Value, E> Input>
  update_type const& operator()(Input const& input) {
    return inside_->call(detail::with_any_stride<Value, E>(input));
  }

private:
  using view_type = detail::view_of_any_stride<Value, E>;
  using making_type = detail::accumulation<Index, Value, memory_space>;

  struct holder_base {
    explicit holder_base(allreduce_promises stated) : promises(std::move(stated)) {}
    holder_base& operator=(holder_base&&) = delete;
    virtual ~holder_base() = default;

    virtual std::int64_t length() const = 0;
    virtual std::int64_t k() const = 0;
    virtual std::string_view name() const = 0;
    virtual std::string explain(bool by_table) const = 0;
    virtual std::string type_of_state() const = 0;
    virtual double bound_words() const = 0;
    virtual call_statistics const& last_call() const = 0;
    virtual E const& execution() const = 0;
    virtual Comm& comm() = 0;
    virtual void set_k(std::int64_t k) = 0;
    virtual std::vector<char> checkpoint() const = 0;
    virtual void restore(std::vector<char> const& checkpoint, std::string const& fault) = 0;
    virtual void reset() = 0;
    virtual std::vector<char> for_other_ranks(std::vector<char> const& checkpoint) const = 0;
    virtual void fail(detail::fault_report const& why) = 0;
    virtual update_type const& call(view_type const& accumulator) = 0;
    virtual update_type const& call(making_type const& accumulator) = 0;

    allreduce_promises const promises;
  };

  template <class Allreduce>
  struct holder final : holder_base {
    using state = typename Allreduce::state_type;

    holder(E const& exec, Comm const& comm, typename Allreduce::options const& how)
        : holder_base(Allreduce::promises(how)), allreduce(exec, comm, how) {}

    std::int64_t length() const override { return allreduce.length(); }
    std::int64_t k() const override { return allreduce.k(); }
    std::string_view name() const override { return allreduce.name(); }
    std::string explain([[maybe_unused]] bool by_table) const override {
      if constexpr (requires {
                      allreduce.explain();
                      allreduce.table();
                    }) {
        return by_table ? allreduce.table() : allreduce.explain();
      } else {
        return {};
      }
    }
    std::string type_of_state() const override { return state::type_name(); }
    double bound_words() const override { return allreduce.bound_words(); }
    call_statistics const& last_call() const override { return allreduce.last_call(); }
    E const& execution() const override { return allreduce.execution(); }
    Comm& comm() override { return allreduce.comm(); }

    void set_k(std::int64_t k) override {
      if constexpr (requires { allreduce.set_k(k); }) {
        allreduce.set_k(k);
      } else {
        throw error(fault::k_out_of_range, std::string(allreduce.name()) + " takes no other k");
      }
    }

    std::vector<char> checkpoint() const override { return detail::checkpoint_of(allreduce.state()); }

    std::vector<char> for_other_ranks(std::vector<char> const& checkpoint) const override {
      try {
        return detail::checkpoint_of(oktopk::for_other_ranks(detail::state_of<state>(checkpoint)));
      } catch (error const& found) {
        throw error(fault::bad_state, found.sentence());
      }
    }

    void restore(std::vector<char> const& checkpoint, std::string const& fault) override {
      agreement terms("any_allreduce::restore");
      state saved;
      terms.note(fault::bad_state, fault);
      try {
        saved = detail::state_of<state>(checkpoint);
      } catch (error const& found) {
        terms.note(fault::bad_state, found.sentence());
      }
      terms.check_on(allreduce.comm());
      allreduce.restore(saved);
    }

    void reset() override { allreduce.restore(state()); }

    void fail(detail::fault_report const& why) override { allreduce.fail(why); }
    update_type const& call(view_type const& accumulator) override { return allreduce(accumulator); }
    update_type const& call(making_type const& accumulator) override { return allreduce(accumulator); }

    Allreduce allreduce;
  };

  // A sentence if the state is of another algorithm or of other policies; else empty, also if it cannot be read.
  std::string fault_of(state_type const& saved) const {
    std::string const policies(saved.policies.begin(), saved.policies.end());
    auto const with_policies = [](std::string const& type, std::string const& chosen) {
      return type.substr(0, type.find(" (")) + "(" + chosen + ")";
    };
    std::string type;
    try {
      std::istringstream in(std::string(saved.checkpoint.begin(), saved.checkpoint.end()));
      type = detail::checkpoint_reader(in).type();
    } catch (error const&) {
      return {}; // reading the whole state finds the fault
    }
    std::string const theirs = with_policies(type, policies);
    if (theirs == with_policies(inside_->type_of_state(), description_.policies)) {
      return {};
    }
    return "the state is of " + (policies.empty() ? type : theirs) + ", this is " + text();
  }

  std::unique_ptr<holder_base> inside_;
  detail::any_description description_;
  mutable detail::any_state state_; // the result of the last `state()`
};

} // namespace oktopk
