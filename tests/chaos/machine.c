/* A machine whose wall clock jumps and whose disk is slow, on demand: preloaded into a process.

   CHAOS_MACHINE names a file of two signed integers of 64 bits: nanoseconds to add to the wall clock, and nanoseconds that
   every fdatasync takes longer. It is mapped once and looked at on every call, so a change counts at once. The steady clock
   is left alone: it does not jump in real life either. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define BILLION 1000000000

struct machine {
    int64_t offset;
    int64_t delay;
};

static volatile const struct machine *machine;

__attribute__((constructor)) static void map_machine(void) {
    const char *path = getenv("CHAOS_MACHINE");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof *machine, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) machine = mapped;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (result == 0 && machine != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t moved = now->tv_nsec + machine->offset;
        int64_t seconds = moved / BILLION, rest = moved % BILLION;
        if (rest < 0) {
            rest += BILLION;
            seconds--;
        }
        now->tv_sec += seconds;
        now->tv_nsec = rest;
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return result;
}

time_t time(time_t *where) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (where != NULL) *where = precise.tv_sec;
    return precise.tv_sec;
}

int fdatasync(int descriptor) {
    int64_t delay = machine == NULL ? 0 : machine->delay;
    if (delay > 0) {
        struct timespec pause = {delay / BILLION, delay % BILLION};
        nanosleep(&pause, NULL);
    }
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(descriptor);
}
