/* A disk that fails on demand: preloaded into a process, it lets calls fail as the control file says.

   FAULTS names the control file. Each of its lines is a rule: CALL WHAT PART COUNT [SKIP]

     CALL   fsync, fdatasync, pwrite, write, ftruncate, unlink, rename
     WHAT   EIO, ENOSPC, EDQUOT or EROFS: the call fails with it and does nothing;
            HALF: half of the bytes are written, then it fails with EIO;
            KILL: the process dies as by kill -9, before the call; DIE: after it
     PART   a part of the file's path, `-wal` at the end say; `*` is any
     COUNT  so many calls fail, `*`: all of them
     SKIP   so many calls that fit pass first

   The file is looked at on every call and read when it is another one than before (replace it by renaming: counts begin
   anew). What was done is appended to FAULTS with `.log` behind it, a line each, so that a test can wait for it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define MOST_RULES 32
#define PASS 0
#define HALF (-1)
#define KILL (-2)
#define DIE (-3)

struct rule {
    char call[16];
    char part[256];
    int what;
    long count; /* -1: all */
    long skip;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct rule rules[MOST_RULES];
static int rule_count;
static struct stat seen;

static int read_what(const char *text) {
    if (!strcmp(text, "EIO")) return EIO;
    if (!strcmp(text, "ENOSPC")) return ENOSPC;
    if (!strcmp(text, "EDQUOT")) return EDQUOT;
    if (!strcmp(text, "EROFS")) return EROFS;
    if (!strcmp(text, "HALF")) return HALF;
    if (!strcmp(text, "KILL")) return KILL;
    if (!strcmp(text, "DIE")) return DIE;
    return PASS;
}

static void read_rules(const char *control) {
    char line[512], what[16], count[32];
    FILE *file = fopen(control, "re");
    rule_count = 0;
    if (file == NULL) return;
    while (rule_count < MOST_RULES && fgets(line, sizeof line, file)) {
        struct rule *rule = &rules[rule_count];
        rule->skip = 0;
        if (sscanf(line, "%15s %15s %255s %31s %ld", rule->call, what, rule->part, count, &rule->skip) < 4) continue;
        rule->what = read_what(what);
        rule->count = count[0] == '*' ? -1 : atol(count);
        rule_count++;
    }
    fclose(file);
}

static void look_at_control(const char *control) {
    struct stat now;
    if (stat(control, &now) != 0) {
        rule_count = 0;
        memset(&seen, 0, sizeof seen);
        return;
    }
    if (now.st_ino == seen.st_ino && now.st_size == seen.st_size && now.st_mtim.tv_sec == seen.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec)
        return;
    seen = now;
    read_rules(control);
}

static void note(const char *control, const char *call, const char *path, int what) {
    char name[4200], line[4400];
    snprintf(name, sizeof name, "%s.log", control);
    int length = snprintf(line, sizeof line, "%s %d %s\n", call, what, path);
    int log = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0) return;
    (void)!syscall(SYS_write, log, line, (size_t)length); /* not by way of our own `write` */
    close(log);
}

static int decide(const char *call, const char *path) {
    const char *control = getenv("FAULTS");
    int what = PASS;
    if (control == NULL) return PASS;
    pthread_mutex_lock(&mutex);
    look_at_control(control);
    for (int place = 0; place < rule_count && what == PASS; place++) {
        struct rule *rule = &rules[place];
        if (strcmp(rule->call, call) || !rule->count || (strcmp(rule->part, "*") && !strstr(path, rule->part))) continue;
        if (rule->skip > 0) {
            rule->skip--;
            continue;
        }
        if (rule->count > 0) rule->count--;
        what = rule->what;
    }
    if (what != PASS) note(control, call, path, what);
    pthread_mutex_unlock(&mutex);
    if (what == KILL) kill(getpid(), SIGKILL);
    return what;
}

static int decide_of(const char *call, int descriptor) {
    char link[64], path[4096];
    int error = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = '\0';
    int what = decide(call, path);
    errno = error;
    return what;
}

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))

/* `done` is the real call; `short_one` what is done of it before it fails by HALF. */
#define ACT(result, what, done, short_one)          \
    do {                                            \
        if (what > 0) {                             \
            errno = what;                           \
            return -1;                              \
        }                                           \
        if (what == HALF) {                         \
            (void)!(short_one);                     \
            errno = EIO;                            \
            return -1;                              \
        }                                           \
        result = (done);                            \
        if (what == DIE) kill(getpid(), SIGKILL);   \
        return result;                              \
    } while (0)

int fsync(int descriptor) {
    int what = decide_of("fsync", descriptor), result;
    ACT(result, what, REAL("fsync", int (*)(int))(descriptor), 0);
}

int fdatasync(int descriptor) {
    int what = decide_of("fdatasync", descriptor), result;
    ACT(result, what, REAL("fdatasync", int (*)(int))(descriptor), 0);
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    ssize_t result;
    int what = decide_of("write", descriptor);
    ACT(result, what, syscall(SYS_write, descriptor, bytes, count), syscall(SYS_write, descriptor, bytes, count / 2));
}

typedef ssize_t (*pwrite_call)(int, const void *, size_t, off_t);

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t place) {
    ssize_t result;
    int what = decide_of("pwrite", descriptor);
    pwrite_call real = REAL("pwrite", pwrite_call);
    ACT(result, what, real(descriptor, bytes, count, place), real(descriptor, bytes, count / 2, place));
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t place) {
    return pwrite(descriptor, bytes, count, place);
}

int ftruncate(int descriptor, off_t length) {
    int what = decide_of("ftruncate", descriptor), result;
    ACT(result, what, REAL("ftruncate", int (*)(int, off_t))(descriptor, length), 0);
}

int ftruncate64(int descriptor, off64_t length) { return ftruncate(descriptor, length); }

int unlink(const char *path) {
    int what = decide("unlink", path), result;
    ACT(result, what, REAL("unlink", int (*)(const char *))(path), 0);
}

int rename(const char *from, const char *to) {
    int what = decide("rename", to), result;
    ACT(result, what, REAL("rename", int (*)(const char *, const char *))(from, to), 0);
}
