// cp.async: a copy happens when a wait forces it, and owns its destination until then.
#include <cstring>

#include "../core/shadow.h"

using namespace emu;

namespace {

void perform(Fiber* f, const Copy& copy) {
    if (checking() && copy.src_bytes) check(f, copy.src, copy.src_bytes, Access::READ, copy.pc);
    std::memset(copy.dst + copy.src_bytes, 0, copy.bytes - copy.src_bytes);
    std::memcpy(copy.dst, copy.src, copy.src_bytes);
    end_write(f, copy.dst, copy.bytes, copy.pc);
}

// Work that was started and that nothing waits for is a mistake in the count of waits, harmless or not.
void at_exit(Fiber* f) {
    if (launch.races && !f->copies.empty())
        fail(EMU_RACE,
             format("%s starts a copy at %s that nothing waits for", who(f).c_str(),
                    place(f->copies[0].pc).c_str()), f);
    for (const Copy& copy : f->copies) {
        std::memset(copy.dst + copy.src_bytes, 0, copy.bytes - copy.src_bytes);
        std::memcpy(copy.dst, copy.src, copy.src_bytes);
    }
    f->copies.clear();
}

const bool registered = (add_exit_hook(at_exit), true);

}  // namespace

void emu::finish_copies(Fiber* f, uint32_t serial) {
    size_t kept = 0;
    for (size_t i = 0; i < f->copies.size(); ++i) {
        const Copy copy = f->copies[i];
        if (copy.serial > serial)
            f->copies[kept++] = copy;
        else
            perform(f, copy);
    }
    f->copies.resize(kept);
}

extern "C" {

void emu_cp_async(uint32_t dst, const void* src, uint32_t bytes, uint32_t src_bytes) {
    void* pc = EMU_CALLER;
    (void)registered;
    Fiber* f = me();
    enter(f);
    if (src_bytes > bytes)
        fail(EMU_MISUSE, format("%s copies %u bytes with a source of %u at %s", who(f).c_str(), bytes,
                                src_bytes, place(pc).c_str()), f);
    if (dst % bytes || (reinterpret_cast<uintptr_t>(src) % bytes && src_bytes))
        fail(EMU_MEMORY, format("%s copies %u bytes at %s %s an address that is not a multiple of %u",
                                who(f).c_str(), bytes, place(pc).c_str(), dst % bytes ? "to" : "from",
                                bytes), f);
    unsigned char* to = shared_pointer(f, dst, bytes, "cp.async", pc);
    if (checking() && src_bytes) check(f, src, src_bytes, Access::READ, pc);
    begin_write(f, to, bytes, pc);
    f->copies.push_back({to, static_cast<const unsigned char*>(src), bytes, src_bytes, f->copy_group, pc,
                         ++f->copy_serial});
}

void emu_cp_async_commit() { ++me()->copy_group; }

// Waits until at most `pending` committed groups are open; -1: for everything, committed or not.
void emu_cp_async_wait(int pending) {
    Fiber* f = me();
    enter(f);
    size_t kept = 0;
    for (size_t i = 0; i < f->copies.size(); ++i) {
        const Copy copy = f->copies[i];
        if (pending >= 0 && int(copy.group) >= int(f->copy_group) - pending)
            f->copies[kept++] = copy;
        else
            perform(f, copy);
    }
    f->copies.resize(kept);
}
}
