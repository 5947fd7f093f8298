#include "clock.h"

namespace emu {

void ClockJoin::add(const ClockRef& known) {
    const Clock* other = known.get();
    if (!other || other == last_) return;
    last_ = other;
    auto& at = mutable_clock()->at;
    for (std::size_t i = 0; i < other->at.size(); ++i) at[i] = at[i] < other->at[i] ? other->at[i] : at[i];
    for (const auto& [team, clock] : other->foreign) add_foreign(team, clock);
}

void ClockJoin::add_foreign(uint32_t team, const ClockRef& clock) {
    ClockRef& mine = mutable_clock()->foreign[team];
    if (mine.get() == clock.get()) return;
    if (!mine) {
        mine = clock;
        return;
    }
    ClockJoin both(clock.get()->at.size());
    both.add(mine);
    both.add(clock);
    mine = both.take();
}

}  // namespace emu
