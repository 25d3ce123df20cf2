/* Preloaded into a process, it counts the calls that touch what lies below one folder, and at one of them the process
 * dies, stops, or is told that the call failed. Built and driven by faults.py. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COUNT, KILL, TEAR, STOP, FAIL, FULL };
#define FILES 4096

static char folder[4096];
static char ours[FILES]; /* file descriptors of what lies below the folder */
static long calls, at;
static int mode, error, trace = -1;

/* Called by faults.py in the child: from now on, calls count. */
void faults_arm(const char *below, long which, int how, int number, int record) {
    memset(ours, 0, sizeof ours);
    ours[1] = ours[2] = how != FULL; /* what is said can fail too, but a full disk is not that of the terminal */
    mode = how, error = number, at = which, trace = record, calls = 0;
    snprintf(folder, sizeof folder, "%s", below);
}

static int below(int dir, const char *path) {
    if (!folder[0]) return 0;
    if (path[0] != '/') return dir >= 0 && dir < FILES && ours[dir];
    size_t length = strlen(folder);
    return !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

static int mine(int fd) { return folder[0] && fd >= 0 && fd < FILES && ours[fd]; }

/* A line for faults.py: the call, whether it takes room on the disk, and what it is about. */
static void note(const char *name, const char *path, int fd, int fills) {
    char line[4400], link[64], target[4096] = "";
    if (!path) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = 0;
    }
    int length = snprintf(line, sizeof line, "%s\t%d\t%s\n", name, fills, path ? path : target);
    syscall(SYS_write, trace, line, length);
}

/* Whether this call is to fail. ``fills``: it takes room on the disk. */
static int meets(const char *name, const char *path, int fd, int fills) {
    calls++;
    if (trace >= 0) note(name, path, fd, fills);
    if (mode == FULL ? (fills && calls >= at) : (mode == FAIL && calls == at)) {
        errno = error;
        return 1;
    }
    if (calls == at && mode == KILL) kill(getpid(), SIGKILL);
    if (calls == at && mode == STOP) raise(SIGSTOP);
    return 0;
}

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) *(void **)&real = dlsym(RTLD_NEXT, name)
#define AFTER(result) if (calls == at && mode == TEAR) kill(getpid(), SIGKILL); return result

static int opened(int fd) {
    if (fd >= 0 && fd < FILES) ours[fd] = 1;
    return fd;
}

static int not_ours(int fd) {
    if (fd >= 0 && fd < FILES && fd > 2) ours[fd] = 0;
    return fd;
}

static int opening(int dir, const char *path, int flags, mode_t rights) {
    REAL(int, "openat", int, const char *, int, ...);
    if (!below(dir, path)) return not_ours(real(dir, path, flags, rights));
    if (meets("open", path, -1, (flags & O_CREAT) != 0)) return -1;
    int fd = opened(real(dir, path, flags, rights));
    AFTER(fd);
}

#define OPEN(name)                                                        \
    int name(const char *path, int flags, ...) {                          \
        va_list more; va_start(more, flags);                              \
        mode_t rights = flags & O_CREAT ? va_arg(more, mode_t) : 0;       \
        va_end(more);                                                     \
        return opening(AT_FDCWD, path, flags, rights);                    \
    }
#define OPENAT(name)                                                      \
    int name(int dir, const char *path, int flags, ...) {                 \
        va_list more; va_start(more, flags);                              \
        mode_t rights = flags & O_CREAT ? va_arg(more, mode_t) : 0;       \
        va_end(more);                                                     \
        return opening(dir, path, flags, rights);                         \
    }
OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64)

ssize_t write(int fd, const void *buffer, size_t n) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (!mine(fd)) return real(fd, buffer, n);
    if (meets("write", NULL, fd, 1)) return -1;
    if (calls == at && mode == TEAR) n = n / 2;
    ssize_t written = real(fd, buffer, n);
    AFTER(written);
}

ssize_t read(int fd, void *buffer, size_t n) {
    REAL(ssize_t, "read", int, void *, size_t);
    if (mine(fd) && meets("read", NULL, fd, 0)) return -1;
    return real(fd, buffer, n);
}

int close(int fd) {
    REAL(int, "close", int);
    if (!mine(fd)) return real(fd);
    int fails = meets("close", NULL, fd, 0), number = errno;
    ours[fd] = 0;
    int result = real(fd);
    if (fails) errno = number;
    return fails ? -1 : result;
}

#define ON_FILE(name, fills)                                              \
    int name(int fd) {                                                    \
        REAL(int, #name, int);                                            \
        if (mine(fd) && meets(#name, NULL, fd, fills)) return -1;         \
        return real(fd);                                                  \
    }
ON_FILE(fsync, 1) ON_FILE(fdatasync, 1)

int flock(int fd, int what) {
    REAL(int, "flock", int, int);
    if (mine(fd) && meets("flock", NULL, fd, 0)) return -1;
    return real(fd, what);
}

off64_t lseek64(int fd, off64_t to, int from) {
    REAL(off64_t, "lseek64", int, off64_t, int);
    if (mine(fd) && meets("lseek", NULL, fd, 0)) return -1;
    return real(fd, to, from);
}

int access(const char *path, int how) {
    REAL(int, "access", const char *, int);
    if (below(AT_FDCWD, path) && meets("access", path, -1, 0)) return -1;
    return real(path, how);
}

int ftruncate64(int fd, off64_t n) {
    REAL(int, "ftruncate64", int, off64_t);
    if (mine(fd) && meets("ftruncate", NULL, fd, 1)) return -1;
    return real(fd, n);
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    if (!below(AT_FDCWD, to)) return real(from, to);
    if (meets("rename", to, -1, 0)) return -1;
    int result = real(from, to);
    AFTER(result);
}

#define ON_PATH(name)                                                     \
    int name(const char *path) {                                          \
        REAL(int, #name, const char *);                                   \
        if (!below(AT_FDCWD, path)) return real(path);                    \
        if (meets(#name, path, -1, 0)) return -1;                         \
        int result = real(path);                                          \
        AFTER(result);                                                    \
    }
ON_PATH(unlink) ON_PATH(rmdir)

int unlinkat(int dir, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    if (!below(dir, path)) return real(dir, path, flags);
    if (meets("unlink", path, -1, 0)) return -1;
    int result = real(dir, path, flags);
    AFTER(result);
}

int mkdir(const char *path, mode_t rights) {
    REAL(int, "mkdir", const char *, mode_t);
    if (!below(AT_FDCWD, path)) return real(path, rights);
    if (meets("mkdir", path, -1, 1)) return -1;
    int result = real(path, rights);
    AFTER(result);
}

DIR *opendir(const char *path) {
    REAL(DIR *, "opendir", const char *);
    int counts = below(AT_FDCWD, path);
    if (counts && meets("opendir", path, -1, 0)) return NULL;
    DIR *found = real(path);
    if (found) (counts ? opened : not_ours)(dirfd(found));
    return found;
}

struct dirent64 *readdir64(DIR *dir) {
    REAL(struct dirent64 *, "readdir64", DIR *);
    if (mine(dirfd(dir)) && meets("readdir", NULL, dirfd(dir), 0)) return NULL;
    return real(dir);
}

int closedir(DIR *dir) {
    REAL(int, "closedir", DIR *);
    not_ours(dirfd(dir));
    return real(dir);
}

DIR *fdopendir(int fd) {
    REAL(DIR *, "fdopendir", int);
    if (mine(fd) && meets("opendir", NULL, fd, 0)) return NULL;
    return real(fd);
}

struct stat;
struct stat64;
#define STAT(name)                                                        \
    int name(const char *path, struct stat *found) {                      \
        REAL(int, #name, const char *, struct stat *);                    \
        if (below(AT_FDCWD, path) && meets("stat", path, -1, 0)) return -1; \
        return real(path, found);                                         \
    }
STAT(stat) STAT(stat64) STAT(lstat) STAT(lstat64)

int fstatat64(int dir, const char *path, struct stat64 *found, int flags) {
    REAL(int, "fstatat64", int, const char *, struct stat64 *, int);
    if (below(dir, path) && meets("stat", path, -1, 0)) return -1;
    return real(dir, path, found, flags);
}

#define FSTAT(name)                                                       \
    int name(int fd, struct stat *found) {                                \
        REAL(int, #name, int, struct stat *);                             \
        if (mine(fd) && meets("fstat", NULL, fd, 0)) return -1;           \
        return real(fd, found);                                           \
    }
FSTAT(fstat) FSTAT(fstat64)
