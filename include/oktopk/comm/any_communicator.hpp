// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace oktopk {

/// A communicator of any type, known at run time: what is compiled for it runs over all of them.
///
/// Holds a copy of the communicator; its own copies share that. Messages, waits, limits and errors are those of the
/// communicator inside; each costs one virtual call more, and no allocation once as many messages as now were under
/// way before. A request must not outlive the last copy of its communicator.
class any_communicator : public communicator_base {
  class model;
  template <class Comm>
  class holder;

public:
  /// A message of the communicator inside.
  class request {
  public:
    request() = default;
    request(request&& other) noexcept { swap(other); }
    request& operator=(request&& other) noexcept {
      request(std::move(other)).swap(*this);
      return *this;
    }
    ~request() {
      if (of_ != nullptr) {
        of_->release(*this);
      }
    }

    bool active() const { return active_; }
    phase message_phase() const { return use_; }
    /// Of a complete receive: the bytes that arrived, or its room, which is as large, if the transport does not tell.
    std::size_t bytes() const { return bytes_; }

  private:
    friend any_communicator;

    void swap(request& other) noexcept {
      std::swap(of_, other.of_);
      std::swap(bytes_, other.bytes_);
      std::swap(place_, other.place_);
      std::swap(use_, other.use_);
      std::swap(is_bulk_, other.is_bulk_);
      std::swap(active_, other.active_);
    }

    model* of_ = nullptr;
    std::size_t bytes_ = 0;
    std::uint32_t place_ = 0; // of the inner request, which stays until this one ends, for the sentences of its errors
    phase use_ = phase::control;
    bool is_bulk_ = false;
    bool active_ = false;
  };

  using bulk_request = request;

  template <class Comm>
    requires(!std::same_as<Comm, any_communicator> && communicator<Comm>)
  any_communicator(Comm comm) // NOLINT(google-explicit-constructor): it stands for its communicator
      : inside_(std::make_shared<holder<Comm>>(std::move(comm))) {}

  /// Without it, a decorator of an `any_communicator`, which derives from that, would lose itself in an assignment.
  template <class Comm>
    requires(!std::same_as<Comm, any_communicator> && communicator<Comm>)
  any_communicator& operator=(Comm comm) {
    return *this = any_communicator(std::move(comm));
  }

  /// The communicator inside if it is of that type, such as `counted<mpi_communicator>`; else null.
  template <communicator Comm>
  Comm* target() noexcept {
    auto* const found = dynamic_cast<holder<Comm>*>(inside_.get());
    return found == nullptr ? nullptr : &found->comm_;
  }

  int rank() const { return inside_->rank; }
  int size() const { return inside_->size; }
  bool ordered_by_instance() const { return inside_->ordered_by_instance; }
  bool tells_sizes() const { return inside_->tells_sizes; }
  bool takes_other_threads() const { return inside_->takes_other_threads(); }

  request isend(std::span<std::byte const> out, int peer, phase use) { return inside_->isend(out, peer, use); }
  request irecv(std::span<std::byte> in, int peer, phase use) { return inside_->irecv(in, peer, use); }

  /// The instance of a communicator that orders messages by it is one of the default execution space.
  template <execution_space E>
  void start(E const& exec, std::span<bulk_message const> messages, std::span<request> requests) {
    if constexpr (std::is_same_v<E, Kokkos::DefaultExecutionSpace>) {
      inside_->start(&exec, messages, requests);
    } else {
      inside_->start(nullptr, messages, requests);
    }
  }

  void wait_all(std::span<request> requests) { inside_->wait_all(requests); }
  void cancel(std::span<request> requests) noexcept { inside_->cancel(requests); }

  void allreduce(std::span<float> values, reduction op, phase use) { inside_->allreduce(values, op, use); }
  void allreduce(std::span<double> values, reduction op, phase use) { inside_->allreduce(values, op, use); }

  template <class MemorySpace>
  bool can_access() const {
    if constexpr (std::is_same_v<MemorySpace, device_memory>) {
      return inside_->reaches_device;
    } else {
      return Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible && inside_->reaches_host;
    }
  }

  void abort(error const& why) noexcept { inside_->abort(why); }
  void begin_operation(std::string_view name, std::int64_t number) { inside_->begin_operation(name, number); }
  std::int64_t number_object() { return inside_->number_object(); }
  std::int64_t* untagged_objects() const { return inside_->untagged_objects(); }

  time_limit_pair time_limits() const { return inside_->time_limits(); }
  void set_time_limits(time_limit_pair const& both) { inside_->set_time_limits(both); }
  std::chrono::nanoseconds time_limit() const { return time_limits().second; }
  void set_time_limit(std::chrono::nanoseconds limit) { set_time_limits({limit, limit}); }

private:
  using device_memory = Kokkos::DefaultExecutionSpace::memory_space;

  // What does not change is read without a call.
  class model {
  public:
    model& operator=(model&&) = delete;
    virtual ~model() = default;

    virtual bool takes_other_threads() const = 0;
    virtual request isend(std::span<std::byte const> out, int peer, phase use) = 0;
    virtual request irecv(std::span<std::byte> in, int peer, phase use) = 0;
    virtual void start(Kokkos::DefaultExecutionSpace const* exec, std::span<bulk_message const> messages,
                       std::span<request> requests) = 0;
    virtual void wait_all(std::span<request> requests) = 0;
    virtual void cancel(std::span<request> requests) noexcept = 0;
    virtual void release(request const& ended) noexcept = 0;
    virtual void allreduce(std::span<float> values, reduction op, phase use) = 0;
    virtual void allreduce(std::span<double> values, reduction op, phase use) = 0;
    virtual void abort(error const& why) noexcept = 0;
    virtual void begin_operation(std::string_view name, std::int64_t number) = 0;
    virtual std::int64_t number_object() = 0;
    virtual std::int64_t* untagged_objects() = 0;
    virtual time_limit_pair time_limits() const = 0;
    virtual void set_time_limits(time_limit_pair const& both) = 0;

    int rank = 0;
    int size = 1;
    bool ordered_by_instance = false;
    bool tells_sizes = true;
    bool reaches_host = true;
    bool reaches_device = true;
  };

  // Requests of the inner communicator, at places that do not change.
  template <class Inner>
  class table {
  public:
    std::uint32_t put(Inner message) {
      if (free_.empty()) {
        free_.reserve(messages_.size() + 1); // so that `release` never allocates
        messages_.push_back(std::move(message));
        return static_cast<std::uint32_t>(messages_.size() - 1);
      }
      std::uint32_t const place = free_.back();
      free_.pop_back();
      messages_[place] = std::move(message);
      return place;
    }

    void release(std::uint32_t place) noexcept {
      messages_[place] = Inner();
      free_.push_back(place);
    }

    Inner& operator[](std::uint32_t place) { return messages_[place]; }

    std::vector<Inner> lent;    // to a wait of the inner communicator, which sees them together
    std::vector<Inner> started; // scratch of `start`

  private:
    std::vector<Inner> messages_;
    std::vector<std::uint32_t> free_;
  };

  template <class Comm>
  class holder final : public model {
  public:
    explicit holder(Comm comm) : comm_(std::move(comm)) {
      rank = comm_.rank();
      size = comm_.size();
      ordered_by_instance = comm_.ordered_by_instance();
      tells_sizes = comm_.tells_sizes();
      reaches_host = comm_.template can_access<Kokkos::HostSpace>();
      reaches_device = comm_.template can_access<device_memory>();
    }

    bool takes_other_threads() const override { return comm_.takes_other_threads(); }

    request isend(std::span<std::byte const> out, int peer, phase use) override {
      return kept(control_, comm_.isend(out, peer, use), out.size(), use, false);
    }

    request irecv(std::span<std::byte> in, int peer, phase use) override {
      return kept(control_, comm_.irecv(in, peer, use), in.size(), use, false);
    }

    void start(Kokkos::DefaultExecutionSpace const* exec, std::span<bulk_message const> messages,
               std::span<request> requests) override {
      auto& started = bulk().started;
      started.clear();
      started.resize(messages.size());
      try {
        if (exec != nullptr) {
          comm_.start(*exec, messages, std::span(started));
        } else if (ordered_by_instance) {
          throw error(fault::communication, "this communicator takes messages of the default execution space alone");
        } else {
          comm_.start(host_, messages, std::span(started));
        }
      } catch (...) { // the caller has no request yet of the messages that have started
        comm_.cancel(std::span(started));
        throw;
      }
      for (std::size_t i = 0; i < messages.size(); ++i) {
        requests[i] = kept(bulk(), std::move(started[i]), messages[i].bytes.size(), messages[i].use, !is_one_type);
      }
    }

    void wait_all(std::span<request> requests) override {
      wait_for(control_, requests, false);
      if constexpr (!is_one_type) {
        wait_for(bulk_, requests, true);
      }
    }

    void cancel(std::span<request> requests) noexcept override {
      comm_.cancel(std::span<inner_request>()); // also where none is under way
      for (request& each : requests) {
        if (each.of_ != nullptr && each.is_bulk_) {
          comm_.cancel(std::span(&bulk()[each.place_], 1));
        } else if (each.of_ != nullptr) {
          comm_.cancel(std::span(&control_[each.place_], 1));
        }
        each.active_ = false;
      }
    }

    void release(request const& ended) noexcept override {
      ended.is_bulk_ ? bulk().release(ended.place_) : control_.release(ended.place_);
    }

    void allreduce(std::span<float> values, reduction op, phase use) override { comm_.allreduce(values, op, use); }
    void allreduce(std::span<double> values, reduction op, phase use) override { comm_.allreduce(values, op, use); }

    void abort(error const& why) noexcept override { comm_.abort(why); }
    void begin_operation(std::string_view name, std::int64_t number) override { comm_.begin_operation(name, number); }
    std::int64_t number_object() override { return comm_.number_object(); }

    std::int64_t* untagged_objects() override {
      std::int64_t* const inner = comm_.untagged_objects();
      return inner == nullptr ? &untagged_objects_ : inner;
    }

    time_limit_pair time_limits() const override { return comm_.time_limits(); }
    void set_time_limits(time_limit_pair const& both) override { comm_.set_time_limits(both); }

  private:
    friend any_communicator;
    using inner_request = typename Comm::request;
    using inner_bulk_request = typename Comm::bulk_request;
    static constexpr bool is_one_type = std::is_same_v<inner_request, inner_bulk_request>;

    auto& bulk() {
      if constexpr (is_one_type) {
        return control_;
      } else {
        return bulk_;
      }
    }

    template <class Inner>
    request kept(table<Inner>& in, Inner started, std::size_t bytes, phase use, bool is_bulk) {
      request made;
      made.active_ = started.active();
      made.place_ = in.put(std::move(started));
      made.of_ = this;
      made.bytes_ = bytes;
      made.use_ = use;
      made.is_bulk_ = is_bulk;
      return made;
    }

    template <class Inner>
    void note_end(Inner const& message, request& of) const {
      if (of.active_ && !message.active()) {
        of.active_ = false;
        of.bytes_ = detail::arrived_bytes(comm_, message, of.bytes_);
      }
    }

    template <class Inner>
    void wait_for(table<Inner>& in, std::span<request> requests, bool of_bulk) {
      auto const is_mine = [&](request const& each) { return each.of_ != nullptr && each.is_bulk_ == of_bulk; };
      struct lending {
        holder const& self;
        table<Inner>& in;
        std::span<request> requests;
        decltype(is_mine)& mine;
        ~lending() {
          std::size_t at = 0;
          for (request& each : requests) {
            if (mine(each)) {
              in[each.place_] = std::move(in.lent[at++]);
              self.note_end(in[each.place_], each);
            }
          }
        }
      };
      in.lent.clear();
      in.lent.reserve(requests.size()); // throws before anything is moved
      for (request const& each : requests) {
        if (is_mine(each)) {
          in.lent.push_back(std::move(in[each.place_]));
        }
      }
      lending const until_end{*this, in, requests, is_mine};
      comm_.wait_all(std::span(in.lent));
    }

    struct nothing {};

    Comm comm_;
    std::int64_t untagged_objects_ = 0;                            // where the inner communicator counts none
    [[no_unique_address]] Kokkos::DefaultHostExecutionSpace host_; // of messages that no instance orders
    table<inner_request> control_;
    std::conditional_t<is_one_type, nothing, table<inner_bulk_request>> bulk_;
  };

  std::shared_ptr<model> inside_;
};

} // namespace oktopk
