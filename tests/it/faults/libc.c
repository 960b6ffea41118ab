/* Stands between a process and libc: numbers whatever changes the files of one directory and those within, lets number
 * FAULT_AT go wrong, and notes all that was done, so that what had not been flushed can be lost afterwards.
 *
 *   FAULT_DIR   the directory; other files are left alone
 *   FAULT_LOG   the notes: records as `note` writes them
 *   FAULT_AT    the number of the operation, from 1; 0: none
 *   FAULT_HOW   kill   SIGKILL before it
 *               tear   a part of the write, then SIGKILL
 *               short  a part of the write, which says so
 *               eio    an error, and nothing was done
 *               enospc the same, for want of room
 *               full   the same, but only of writes and new files: flushes succeed
 *               late   the write was done, its flush was not: an error
 *   FAULT_TIMES so many operations, from that one on
 *   FAULT_CUT   of a write that is torn, this many thousandths are done
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef __x86_64__
#error "the registers of a system call are those of x86-64"
#endif

/* A rename of our own carries OUR_OWN where the kernel does not look. */
enum { FDS = 4096, NAME = 64, OUR_OWN = 0x0f0f };

static struct {
    int ours, at_once; /* at_once: a write returns when it is flushed */
    char name[NAME];   /* within the directory; empty for itself */
} files[FDS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char directory[PATH_MAX];
static const char *how = "";
static int notes = -1, cut;
static long at, times, number;

static void catch_renames(void);

__attribute__((constructor)) static void begin(void) {
    const char *dir = getenv("FAULT_DIR"), *log = getenv("FAULT_LOG");
    if (!dir || !log) return;
    catch_renames();
    strncpy(directory, dir, sizeof directory - 1);
    notes = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    at = atol(getenv("FAULT_AT"));
    how = getenv("FAULT_HOW");
    times = atol(getenv("FAULT_TIMES"));
    cut = atoi(getenv("FAULT_CUT"));
}

/* The name within the directory, or NULL. */
static const char *within(const char *path) {
    size_t n = strlen(directory);
    if (notes < 0 || strncmp(path, directory, n) || (path[n] && path[n] != '/')) return NULL;
    const char *name = path + n + (path[n] == '/');
    return strlen(name) < NAME ? name : NULL;
}

static int is_ours(int fd) { return fd >= 0 && fd < FDS && files[fd].ours; }

/* One record: what was done, at once or not, to which file, where, as which operation, and with which bytes. */
static void note(char what, int at_once, const char *name, uint64_t offset, const void *bytes, uint32_t len) {
    struct __attribute__((packed)) { char what, at_once; uint16_t name; uint32_t len; uint64_t offset, number; } head =
        { what, at_once, strlen(name), len, offset, number };
    struct iovec parts[] = { { &head, sizeof head }, { (void *)name, head.name }, { (void *)bytes, len } };
    syscall(SYS_writev, notes, parts, 3);
}

static void die(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

/* Counts one operation, with the lock held; `grows`: it needs room. Gives 0 to go on, or the errno to fail with; -1
 * for a part of a write and -2 for a write that is not flushed. */
static int next(const char *name, int grows) {
    number++;
    if (!at || number < at || number >= at + times || (!strcmp(how, "full") && !grows)) return 0;
    note('!', 0, name, 0, NULL, 0);
    if (!strcmp(how, "kill")) die();
    if (!strcmp(how, "enospc") || !strcmp(how, "full")) return ENOSPC;
    if (!strcmp(how, "late")) return -2;
    return strcmp(how, "eio") ? -1 : EIO;
}

/* Where a write goes. */
static uint64_t place(int fd, int64_t offset) {
    if (offset >= 0) return offset;
    int flags = syscall(SYS_fcntl, fd, F_GETFL);
    return syscall(SYS_lseek, fd, 0, flags & O_APPEND ? SEEK_END : SEEK_CUR);
}

/* Every way to write ends here; an offset of -1 is where the file stands. */
static ssize_t put(int fd, const struct iovec *parts, int count, int64_t offset) {
    if (fd == STDOUT_FILENO && notes >= 0) {
        for (int i = 0; i < count; i++) note('>', 0, "", 0, parts[i].iov_base, parts[i].iov_len);
    }
    if (!is_ours(fd)) {
        if (offset < 0) return syscall(SYS_writev, fd, parts, count);
        return syscall(SYS_pwritev, fd, parts, count, (long)offset, 0);
    }
    size_t len = 0, filled = 0;
    for (int i = 0; i < count; i++) len += parts[i].iov_len;
    char *bytes = malloc(len ? len : 1);
    for (int i = 0; i < count; filled += parts[i++].iov_len) {
        memcpy(bytes + filled, parts[i].iov_base, parts[i].iov_len);
    }
    pthread_mutex_lock(&lock);
    int fault = next(files[fd].name, 1);
    ssize_t done = -1;
    if (fault > 0) {
        errno = fault;
    } else {
        size_t part = fault == -1 ? len * cut / 1000 : len;
        uint64_t to = place(fd, offset);
        done = part ? offset < 0 ? syscall(SYS_write, fd, bytes, part) : syscall(SYS_pwrite64, fd, bytes, part, to) : 0;
        if (done > 0) note('w', files[fd].at_once && fault != -2, files[fd].name, to, bytes, done);
        if (fault == -1 && !strcmp(how, "tear")) die();
        if (fault == -2) done = -1, errno = EIO;
    }
    pthread_mutex_unlock(&lock);
    free(bytes);
    return done;
}

ssize_t write(int fd, const void *bytes, size_t len) {
    return put(fd, &(struct iovec){ (void *)bytes, len }, 1, -1);
}
ssize_t writev(int fd, const struct iovec *parts, int count) { return put(fd, parts, count, -1); }
ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset) {
    return put(fd, &(struct iovec){ (void *)bytes, len }, 1, offset);
}
ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t offset) { return pwrite(fd, bytes, len, offset); }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) { return put(fd, parts, count, offset); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t offset) { return put(fd, parts, count, offset); }

static int flush(int fd, long call) {
    if (!is_ours(fd)) return syscall(call, fd);
    pthread_mutex_lock(&lock);
    int fault = next(files[fd].name, 0), done = -1;
    if (fault && !strcmp(how, "tear")) die();
    if (fault) {
        note('f', 0, files[fd].name, 0, NULL, 0);
        errno = fault > 0 ? fault : EIO;
    } else if (!(done = syscall(call, fd))) {
        note('s', 0, files[fd].name, 0, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return done;
}

int fsync(int fd) { return flush(fd, SYS_fsync); }
int fdatasync(int fd) { return flush(fd, SYS_fdatasync); }

int ftruncate(int fd, off_t len) {
    if (!is_ours(fd)) return syscall(SYS_ftruncate, fd, len);
    pthread_mutex_lock(&lock);
    int fault = next(files[fd].name, 0), done = -1;
    if (fault && !strcmp(how, "tear")) die();
    if (fault) errno = fault > 0 ? fault : EIO;
    else if (!(done = syscall(SYS_ftruncate, fd, len))) note('t', 0, files[fd].name, len, NULL, 0);
    pthread_mutex_unlock(&lock);
    return done;
}
int ftruncate64(int fd, off_t len) { return ftruncate(fd, len); }

/* Renames, removals and new directories, as `what` says. */
static int change(char what, const char *path, const char *to, mode_t mode) {
    const char *name = within(path), *target = to ? within(to) : "";
    int is_new = what != 'm' || syscall(SYS_access, path, F_OK), ours = name && target && is_new, done = -1, fault = 0;
    if (ours) {
        pthread_mutex_lock(&lock);
        fault = next(name, what == 'm');
        if (fault && !strcmp(how, "tear")) die();
    }
    if (fault) errno = fault > 0 ? fault : EIO;
    else if (what == 'r') done = syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, to, 0, OUR_OWN);
    else if (what == 'u') done = syscall(SYS_unlink, path);
    else done = syscall(SYS_mkdir, path, mode);
    if (ours) {
        if (!done) note(what, 0, name, 0, target, strlen(target));
        pthread_mutex_unlock(&lock);
    }
    return done;
}

int rename(const char *from, const char *to) { return change('r', from, to, 0); }
int unlink(const char *path) { return change('u', path, NULL, 0); }
int mkdir(const char *path, mode_t mode) { return change('m', path, NULL, mode); }

/* A rename that went past libc: rustix, and so the crate tempfile, asks the kernel itself. */
static void caught(int signal, siginfo_t *info, void *context) {
    (void)signal;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    int before = errno, plain = info->si_syscall == SYS_rename;
    const char *from = (const char *)registers[plain ? REG_RDI : REG_RSI];
    const char *to = (const char *)registers[plain ? REG_RSI : REG_R10];
    registers[REG_RAX] = rename(from, to) ? -errno : 0;
    errno = before;
}

static void catch_renames(void) {
    struct sigaction action = { .sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_NODEFER };
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rename, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_OWN, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = sizeof filter / sizeof *filter, .filter = filter };
    sigaction(SIGSYS, &action, NULL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int open_as(int dir, const char *path, int flags, mode_t mode) {
    const char *name = path[0] == '/' ? within(path) : NULL;
    if (!name) {
        int fd = syscall(SYS_openat, dir, path, flags, mode);
        if (fd >= 0 && fd < FDS) files[fd].ours = 0;
        return fd;
    }
    pthread_mutex_lock(&lock);
    int is_new = syscall(SYS_access, path, F_OK) != 0, fault = flags & O_CREAT ? next(name, 1) : 0, fd = -1;
    if (fault && !strcmp(how, "tear")) die();
    if (fault) errno = fault > 0 ? fault : EIO;
    else fd = syscall(SYS_openat, dir, path, flags, mode);
    if (fd >= 0 && fd < FDS) {
        files[fd].ours = 1;
        files[fd].at_once = (flags & (O_DSYNC | O_SYNC)) != 0;
        strcpy(files[fd].name, name);
        if (is_new) note('c', 0, name, 0, NULL, 0);
        else if (flags & O_TRUNC) note('t', 0, name, 0, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

#define OPEN(NAME, DIR, ...)                                            \
    int NAME(__VA_ARGS__, int flags, ...) {                             \
        va_list rest;                                                   \
        va_start(rest, flags);                                          \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;       \
        va_end(rest);                                                   \
        return open_as(DIR, path, flags, mode);                         \
    }
OPEN(open, AT_FDCWD, const char *path)
OPEN(open64, AT_FDCWD, const char *path)
OPEN(openat, dir, int dir, const char *path)
OPEN(openat64, dir, int dir, const char *path)

int close(int fd) {
    if (is_ours(fd)) files[fd].ours = 0;
    return syscall(SYS_close, fd);
}
