/* A wall clock that jumps on demand: preloaded into a process, it adds an offset to what the system says.

   CHAOS_CLOCK names a file of eight bytes: the offset in nanoseconds, a signed integer of this machine. It is mapped once and
   looked at on every call, so a change counts at once. The steady clock is left alone: it does not jump in real life either. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *offset;

__attribute__((constructor)) static void map_offset(void) {
    const char *path = getenv("CHAOS_CLOCK");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) offset = mapped;
    close(file);
}

static int read_clock(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    return real(clock, now);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = read_clock(clock, now);
    if (result == 0 && offset != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t moved = now->tv_nsec + *offset;
        int64_t seconds = moved / 1000000000, rest = moved % 1000000000;
        if (rest < 0) {
            rest += 1000000000;
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
