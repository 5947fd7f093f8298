// Vector clocks: which accesses of which threads a thread may rely on.
//
// A thread stamps its accesses with its own `time`. Access (thread u, time c) is ordered before what
// thread t does now if c <= t.known[u]. Clocks are immutable and shared: a barrier of 1024 threads
// makes one new clock, not 1024.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace emu {

struct Clock;

// A counted reference; checked launches run on one OS thread, so the count is a plain int.
class ClockRef {
  public:
    ClockRef() = default;
    explicit ClockRef(Clock* clock);
    ClockRef(const ClockRef& other);
    ClockRef(ClockRef&& other) noexcept : clock_(std::exchange(other.clock_, nullptr)) {}
    ClockRef& operator=(ClockRef other) noexcept {
        std::swap(clock_, other.clock_);
        return *this;
    }
    ~ClockRef();
    const Clock* get() const { return clock_; }
    explicit operator bool() const { return clock_ != nullptr; }

  private:
    Clock* clock_ = nullptr;
};

// Clocks of other teams (blocks, or clusters) that were acquired through memory, by team.
using Foreign = std::map<uint32_t, ClockRef>;

struct Clock {
    int references = 0;
    std::vector<uint32_t> at;  // by thread of the team
    Foreign foreign;
};

inline ClockRef::ClockRef(Clock* clock) : clock_(clock) {
    if (clock_) ++clock_->references;
}
inline ClockRef::ClockRef(const ClockRef& other) : ClockRef(other.clock_) {}
inline ClockRef::~ClockRef() {
    if (clock_ && --clock_->references == 0) delete clock_;
}

// Gathers what several threads know into one clock.
class ClockJoin {
  public:
    explicit ClockJoin(std::size_t threads) : clock_(new Clock{0, std::vector<uint32_t>(threads), {}}) {}
    // Everything that `known` says.
    void add(const ClockRef& known);
    // Everything that thread `id` did up to `time`.
    void add(uint32_t id, uint32_t time) {
        if (clock_.get()->at[id] < time) mutable_clock()->at[id] = time;
    }
    void add_foreign(uint32_t team, const ClockRef& clock);
    ClockRef take() { return std::move(clock_); }

  private:
    Clock* mutable_clock() { return const_cast<Clock*>(clock_.get()); }
    ClockRef clock_;
    const Clock* last_ = nullptr;  // threads after a barrier share their clock: add it once
};

}  // namespace emu
