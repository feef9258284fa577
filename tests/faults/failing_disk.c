/* A disk that fails: preloaded, it lets the Nth change of a file below some folders fail, in any process.
 *
 *   FAILING_COUNTER  a file of eight bytes that all processes share: how many changes there were
 *   FAILING_AT       the number of the change that fails; 0 for none
 *   FAILING_ERRNO    the error
 *   FAILING_ALWAYS   1: every later change fails as well, as on a full or a read-only disk
 *   FAILING_UNDER    the folders, separated by colons
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static _Atomic long *counter;
static long at, error, always;
static const char *under;

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("FAILING_COUNTER");
    under = getenv("FAILING_UNDER");
    if (!file || !under) return;
    at = atol(getenv("FAILING_AT") ? getenv("FAILING_AT") : "0");
    error = atol(getenv("FAILING_ERRNO") ? getenv("FAILING_ERRNO") : "28");
    always = atol(getenv("FAILING_ALWAYS") ? getenv("FAILING_ALWAYS") : "0");
    int handle = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC, 0);
    if (handle < 0) return;
    void *found = mmap(NULL, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
    syscall(SYS_close, handle);
    if (found != MAP_FAILED) counter = found;
}

static int below(const char *path) {
    for (const char *one = under; *one;) {
        size_t length = strcspn(one, ":");
        if (!strncmp(path, one, length) && (path[length] == '/' || !path[length])) return 1;
        one += length + (one[length] == ':');
    }
    return 0;
}

static int where(int folder, const char *path, char *whole) {
    if (!path) return 0;
    if (path[0] == '/') return snprintf(whole, PATH_MAX, "%s", path) > 0;
    char link[64];
    if (folder == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, whole, PATH_MAX - 1);
    if (length < 0) return 0;
    whole[length] = 0;
    if (*path) snprintf(whole + length, PATH_MAX - (size_t)length, "/%s", path);
    return 1;
}

/* Tell whether this change fails; errno is set then. */
static int fails(int folder, const char *path) {
    char whole[PATH_MAX * 2];
    int kept = errno;
    if (!counter || !where(folder, path, whole) || !below(whole)) { errno = kept; return 0; }
    long number = atomic_fetch_add(counter, 1) + 1;
    errno = kept;
    if (!at || number < at || (number > at && !always)) return 0;
    errno = (int)error;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define ON_FD(result, name, parameters, words) \
    result name parameters { if (fails(fd, "")) return -1; return REAL(name) words; }
#define ON_PATH(result, name, parameters, words, folder, path) \
    result name parameters { if (fails(folder, path)) return -1; return REAL(name) words; }

ON_FD(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size))
ON_FD(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t from), (fd, data, size, from))
ON_FD(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t from), (fd, data, size, from))
ON_FD(ssize_t, writev, (int fd, const struct iovec *rows, int count), (fd, rows, count))
ON_FD(int, fsync, (int fd), (fd))
ON_FD(int, fdatasync, (int fd), (fd))
ON_FD(int, syncfs, (int fd), (fd))
ON_FD(int, ftruncate, (int fd, off_t size), (fd, size))
ON_FD(int, ftruncate64, (int fd, off64_t size), (fd, size))
ON_FD(int, fallocate, (int fd, int mode, off_t from, off_t size), (fd, mode, from, size))
ON_PATH(int, mkdir, (const char *path, mode_t mode), (path, mode), AT_FDCWD, path)
ON_PATH(int, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode), folder, path)
ON_PATH(int, rename, (const char *old, const char *path), (old, path), AT_FDCWD, path)
ON_PATH(int, renameat, (int from, const char *old, int to, const char *path), (from, old, to, path), to, path)
ON_PATH(int, renameat2, (int from, const char *old, int to, const char *path, unsigned flags),
        (from, old, to, path, flags), to, path)
ON_PATH(int, link, (const char *old, const char *path), (old, path), AT_FDCWD, path)
ON_PATH(int, linkat, (int from, const char *old, int to, const char *path, int flags),
        (from, old, to, path, flags), to, path)
ON_PATH(int, symlink, (const char *target, const char *path), (target, path), AT_FDCWD, path)
ON_PATH(int, symlinkat, (const char *target, int to, const char *path), (target, to, path), to, path)

ssize_t copy_file_range(int in, off64_t *from, int fd, off64_t *to, size_t size, unsigned flags) {
    if (fails(fd, "")) return -1;
    return REAL(copy_file_range)(in, from, fd, to, size, flags);
}

static int opens(const char *name, int folder, const char *path, int flags, mode_t mode) {
    if ((flags & (O_CREAT | O_TRUNC)) && fails(folder, path)) return -1;
    int (*real)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, name);
    return real(folder, path, flags, mode);
}

#define OPENED(name, folder_parameter, folder, next) \
    int name(folder_parameter const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(rest, int) : 0; \
        va_end(rest); \
        return opens(next, folder, path, flags, mode); \
    }
#define FOLDER int folder,
OPENED(open, , AT_FDCWD, "openat")
OPENED(open64, , AT_FDCWD, "openat64")
OPENED(openat, FOLDER, folder, "openat")
OPENED(openat64, FOLDER, folder, "openat64")
