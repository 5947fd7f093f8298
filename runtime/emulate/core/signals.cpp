#include "signals.h"

#include <csignal>
#include <cstdio>
#include <ctime>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "fiber.h"
#include "schedule.h"

namespace emu {

static struct sigaction old_segv, old_bus, old_fpe, old_tick;
constexpr int TICK = SIGVTALRM;
constexpr size_t SIGNAL_STACK = 64 << 10;
constexpr uint32_t PATIENCE = 20;  // ticks that a fiber has to notice that its time is over

static uintptr_t stack_pointer(void* context) {
    const auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
    return uintptr_t(machine.gregs[REG_RSP]);
#elif defined(__aarch64__)
    return uintptr_t(machine.sp);
#else
#error "the emulator runs on x86-64 and aarch64"
#endif
}

static void continue_at(void* context, void (*where)()) {
    auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
    machine.gregs[REG_RIP] = greg_t(where);
#elif defined(__aarch64__)
    machine.pc = uintptr_t(where);
#endif
}

static uintptr_t program_counter(void* context) {
    const auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
    return uintptr_t(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return uintptr_t(machine.pc);
#endif
}

static Fiber* fiber_of(void* context) {
    const size_t at = (stack_pointer(context) - pool.stacks) >> STACK_BITS;
    return at < pool.count ? pool.fibers + at : nullptr;
}

// What each crashed worker says; written by the handler, read by the landing on the fiber's stack.
static void leave() {
    Fiber* f = me();
    emu_swap(&f->sp, f->team->worker->sp);
    __builtin_unreachable();
}

static void stop(Fiber* f, void* context, EmuKind kind, const char* what) {
    Worker& worker = *f->team->worker;
    EmuReport& r = worker.report;
    r.kind = kind;
    r.thread_a = int(f->linear);
    r.thread_b = -1;
    const void* pc = reinterpret_cast<void*>(program_counter(context) + 1);
    snprintf(r.text, sizeof r.text, "%s %s at %s", who(f).c_str(), what, place(pc).c_str());
    worker.failed = true;
    // The stack may be used up: restart it from its top, where `leave` needs only a little.
    auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
    const uintptr_t top = (stack_of(f) + STACK_BYTES - 256) & ~uintptr_t(63);
#if defined(__x86_64__)
    machine.gregs[REG_RSP] = greg_t(top - 8);
#elif defined(__aarch64__)
    machine.sp = top;
#endif
    continue_at(context, leave);
}

static void chain(const struct sigaction& old, int number, siginfo_t* info, void* context) {
    if (old.sa_flags & SA_SIGINFO) return old.sa_sigaction(number, info, context);
    if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) return old.sa_handler(number);
    signal(number, SIG_DFL);  // returning runs the faulting instruction again, and ends the process
}

static void on_fault(int number, siginfo_t* info, void* context) {
    Fiber* f = fiber_of(context);
    if (!f) {
        const auto& old = number == SIGSEGV ? old_segv : number == SIGBUS ? old_bus : old_fpe;
        return chain(old, number, info, context);
    }
    const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
    const bool overflow = at - stack_of(f) < STACK_BYTES / 8 && number == SIGSEGV;
    if (number == SIGFPE)
        stop(f, context, EMU_MISUSE, "divides by zero");
    else if (overflow)
        stop(f, context, EMU_MISUSE, "needs more local memory than the emulator gives (128 KiB)");
    else
        stop(f, context, EMU_MEMORY,
             "touches memory that is not there, or not aligned (run with check=\"memory\")");
}

static void on_tick(int, siginfo_t* info, void* context) {
    auto* worker = static_cast<Worker*>(info->si_value.sival_ptr);
    if (info->si_code != SI_TIMER || !worker) return;
    worker->expired = true;
    worker->ticks = worker->ticks + 1;
    // A loop that never enters the runtime cannot notice; inside a library it is left alone.
    Fiber* f = fiber_of(context);
    if (f && worker->ticks > PATIENCE && f->state == State::RUNNING)
        stop(f, context, EMU_DEADLOCK, "does not come to an end: its block used up its processor time");
}

static void install(int number, void (*handler)(int, siginfo_t*, void*), struct sigaction* old) {
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, old);
}

SignalScope::SignalScope() {
    install(SIGSEGV, on_fault, &old_segv);
    install(SIGBUS, on_fault, &old_bus);
    install(SIGFPE, on_fault, &old_fpe);
    install(TICK, on_tick, &old_tick);
}

SignalScope::~SignalScope() {
    sigaction(SIGSEGV, &old_segv, nullptr);
    sigaction(SIGBUS, &old_bus, nullptr);
    sigaction(SIGFPE, &old_fpe, nullptr);
    sigaction(TICK, &old_tick, nullptr);
}

WatchScope::WatchScope(Worker& worker) {
    stack_ = mmap(nullptr, SIGNAL_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = {};
    stack.ss_sp = stack_;
    stack.ss_size = SIGNAL_STACK;
    previous_ = new stack_t;
    sigaltstack(&stack, static_cast<stack_t*>(previous_));
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = TICK;
    event.sigev_value.sival_ptr = &worker;
    event._sigev_un._tid = int(syscall(SYS_gettid));
    timer_t timer;
    has_timer_ = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0;
    timer_ = timer;
    worker_ = &worker;
}

void WatchScope::restart() {
    worker_->expired = false;
    worker_->ticks = 0;
    if (!has_timer_) return;
    itimerspec when = {};
    when.it_value.tv_sec = time_t(launch.seconds);
    when.it_value.tv_nsec = long((launch.seconds - double(time_t(launch.seconds))) * 1e9);
    when.it_interval.tv_nsec = 20 * 1000 * 1000;
    timer_settime(timer_, 0, &when, nullptr);
}

WatchScope::~WatchScope() {
    if (has_timer_) timer_delete(timer_);
    sigaltstack(static_cast<stack_t*>(previous_), nullptr);
    delete static_cast<stack_t*>(previous_);
    munmap(stack_, SIGNAL_STACK);
}

}  // namespace emu
