/* Reads and writes of devices and files, past the page cache. Bytes are in the mailbox, one range
   behind the other.

   A range is OFFSET:LENGTH in bytes. What is opened stays open until `close`. */

#define _GNU_SOURCE
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAILBOX "/dev/ubda" /* in user-mode Linux */
#define OTHER_MAILBOX "/dev/vdb"
#define ROOM (4 << 20) /* bytes of each line's part of the mailbox */
#define OPEN 64

static struct {
    char path[128];
    int file;
} opened[OPEN];
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER; /* guards the table */
static __thread char *buffer;

static int found_or_opened(const char *path) {
    int empty = -1;
    for (int i = 0; i < OPEN; i++) {
        if (opened[i].path[0] && !strcmp(opened[i].path, path))
            return opened[i].file;
        if (!opened[i].path[0])
            empty = i;
    }
    if (empty < 0)
        return errno = EMFILE, -1;
    int file = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
    if (file < 0 && (errno == EACCES || errno == EROFS))
        file = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (file >= 0) {
        snprintf(opened[empty].path, sizeof opened[empty].path, "%s", path);
        opened[empty].file = file;
    }
    return file;
}

static int file_of(const char *path) {
    pthread_mutex_lock(&opening);
    int file = found_or_opened(path), saved = errno;
    pthread_mutex_unlock(&opening);
    errno = saved;
    return file;
}

/* close PATH: every path that begins so. */
static int shut(struct request *request) {
    pthread_mutex_lock(&opening);
    for (int i = 0; i < OPEN; i++)
        if (opened[i].path[0] &&
            !strncmp(opened[i].path, request->word[1], strlen(request->word[1]))) {
            close(opened[i].file);
            opened[i].path[0] = 0;
        }
    pthread_mutex_unlock(&opening);
    return 0;
}

struct range {
    off_t offset;
    size_t length;
};

static struct range range_of(const char *word) {
    char *end;
    struct range range = {strtoll(word, &end, 10), 0};
    range.length = strtoull(end + (*end == ':'), NULL, 10);
    return range;
}

static int mailbox(void) {
    static __thread int file = -1;
    if (file < 0)
        file = open(MAILBOX, O_RDWR | O_DIRECT | O_CLOEXEC);
    if (file < 0)
        file = open(OTHER_MAILBOX, O_RDWR | O_DIRECT | O_CLOEXEC);
    if (!buffer && posix_memalign((void **)&buffer, 4096, ROOM))
        return errno = ENOMEM, -1;
    return file;
}

static int whole(ssize_t done, size_t length) {
    if (done < 0)
        return -1;
    return (size_t)done == length ? 0 : (errno = EIO, -1);
}

/* The length of all ranges; -1 where they do not fit into the mailbox. */
static ssize_t total(struct request *request) {
    size_t sum = 0;
    for (int i = 2; i < request->count; i++)
        sum += range_of(request->word[i]).length;
    return sum <= ROOM ? (ssize_t)sum : (errno = E2BIG, -1);
}

/* read PATH RANGE... */
static int get(struct request *request) {
    int file = file_of(request->word[1]), box = mailbox();
    ssize_t sum = total(request), at = 0;
    if (file < 0 || box < 0 || sum < 0)
        return -1;
    for (int i = 2; i < request->count; i++) {
        struct range range = range_of(request->word[i]);
        if (whole(pread(file, buffer + at, range.length, range.offset), range.length))
            return -1;
        at += range.length;
    }
    return whole(pwrite(box, buffer, sum, (off_t)request->line * ROOM), sum);
}

/* write PATH RANGE...: EDQUOT says that there was no space, but that some ranges were written. */
static int give(struct request *request) {
    int file = file_of(request->word[1]), box = mailbox();
    ssize_t sum = total(request), at = 0;
    off_t part = (off_t)request->line * ROOM;
    if (file < 0 || box < 0 || sum < 0 || whole(pread(box, buffer, sum, part), sum))
        return -1;
    for (int i = 2; i < request->count; i++) {
        struct range range = range_of(request->word[i]);
        if (whole(pwrite(file, buffer + at, range.length, range.offset), range.length)) {
            if (i > 2 && errno == ENOSPC)
                errno = EDQUOT; /* some of it was written: the host must not call it refused */
            return -1;
        }
        at += range.length;
    }
    return 0;
}

static int each(struct request *request, unsigned long command) {
    int file = file_of(request->word[1]);
    if (file < 0)
        return -1;
    for (int i = 2; i < request->count; i++) {
        struct range range = range_of(request->word[i]);
        unsigned long long words[2] = {range.offset, range.length};
        if (ioctl(file, command, words)) {
            if (i > 2 && errno == ENOSPC)
                errno = EDQUOT; /* as in give */
            return -1;
        }
    }
    return 0;
}

static int discard(struct request *request) {
    return each(request, BLKDISCARD);
}

/* zero PATH RANGE...: of a device, or of a file whose file system punches no holes. */
static int zero(struct request *request) {
    static const char zeroes[4096] __attribute__((aligned(4096)));
    int failed = each(request, BLKZEROOUT);
    if (!failed || errno != ENOTTY)
        return failed;
    int file = file_of(request->word[1]);
    for (int i = 2; i < request->count; i++)
        for (struct range left = range_of(request->word[i]); left.length;) {
            size_t part = left.length < sizeof zeroes ? left.length : sizeof zeroes;
            if (whole(pwrite(file, zeroes, part, left.offset), part)) {
                if (i > 2 && errno == ENOSPC)
                    errno = EDQUOT; /* as in give */
                return -1;
            }
            left.offset += part, left.length -= part;
        }
    return 0;
}

/* punch PATH RANGE...: holes in a file. */
static int punch(struct request *request) {
    int file = file_of(request->word[1]);
    if (file < 0)
        return -1;
    for (int i = 2; i < request->count; i++) {
        struct range range = range_of(request->word[i]);
        if (fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, range.offset, range.length))
            return -1;
    }
    return 0;
}

static int flush(struct request *request) {
    int file = file_of(request->word[1]);
    return file < 0 ? -1 : fsync(file);
}

/* forget PATH: the page cache of a device, written back first. */
static int forget(struct request *request) {
    int file = file_of(request->word[1]);
    return file < 0 ? -1 : ioctl(file, BLKFLSBUF, 0);
}

const struct named block_verbs[] = {
    {"read", 2, get},     {"write", 2, give}, {"discard", 2, discard}, {"zero", 2, zero},
    {"punch", 2, punch},  {"flush", 1, flush}, {"forget", 1, forget},   {"close", 1, shut},
    {NULL, 0, NULL},
};
