// Entry points by name; the module's export that tells of their parameters.
#include "cores/entries.h"

#include <string.h>

namespace emu {

namespace {

const Entry* find(const char* name) {
    for (int i = 0; i < entries.count; ++i)
        if (!strcmp(entries.first[i].name, name)) return &entries.first[i];
    return nullptr;
}

}  // namespace

const Entry& entry_of(const char* name, int arguments) {
    const Entry* entry = find(name);
    if (!entry) stop(MISUSE, 0, "no entry point %s", name);
    if (entry->arguments != arguments)
        stop(MISUSE, 0, "%s takes %d arguments, not %d", name, entry->arguments, arguments);
    return *entry;
}

}  // namespace emu

extern "C" __attribute__((visibility("default"))) int emu_parameters(const char* entry,
                                                                     uint64_t* sizes,
                                                                     int capacity) {
    const emu::Entry* found = emu::find(entry);
    if (!found) return -1;
    for (int i = 0; i < found->arguments && i < capacity; ++i) sizes[i] = found->sizes[i];
    return found->arguments;
}
