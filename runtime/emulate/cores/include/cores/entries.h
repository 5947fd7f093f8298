// What kernel texts and models of every dialect without threads need: lines of calls, reports, the
// entry points of a module.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace emu {

// The line of the kernel text that makes a call: a default argument is evaluated where the call
// stands.
struct Line {
    int at;
    static constexpr Line here(int at = __builtin_LINE()) { return Line{at}; }
};
#define EMU_LINE ::emu::Line line = ::emu::Line::here()

enum Kind : int32_t { NONE, RACE, MEMORY, DEADLOCK, MISUSE, UNSUPPORTED };
enum Check : int { CHECK_RACES = 1, CHECK_MEMORY = 2 };

// Ends the launch with a report; the text is formatted as printf does.
[[noreturn]] void stop(Kind kind, int line, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

struct Entry {
    const char* name;
    int cores;  // the kind of cores that it runs on, in a dialect that has several
    int arguments;
    const uint64_t* sizes;  // bytes of each argument
    void (*call)(void** arguments);
};

template <auto F>
struct Caller;
template <size_t... I>
struct Indices {};
template <size_t N, size_t... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <size_t... I>
struct MakeIndices<0, I...> {
    using type = Indices<I...>;
};
template <class... A, void (*F)(A...)>
struct Caller<F> {
    static constexpr int arguments = sizeof...(A);
    static constexpr uint64_t sizes[sizeof...(A) + 1] = {sizeof(A)..., 0};
    // Not the text's own reads, where those are counted.
    template <size_t... I>
    __attribute__((no_sanitize("thread"))) static void expand(void** arguments, Indices<I...>) {
        F(*static_cast<A*>(arguments[I])...);
    }
    __attribute__((no_sanitize("thread"))) static void call(void** arguments) {
        expand(arguments, typename MakeIndices<sizeof...(A)>::type{});
    }
};
template <auto F>
constexpr Entry entry(const char* name, int cores = 0) {
    return Entry{name, cores, Caller<F>::arguments, Caller<F>::sizes, &Caller<F>::call};
}

// The entry points of the text, written by the builder.
struct Entries {
    const Entry* first;
    int count;
};
extern const Entries entries;

// The entry point that a launch with so many arguments names, or the launch ends.
const Entry& entry_of(const char* name, int arguments);

}  // namespace emu
