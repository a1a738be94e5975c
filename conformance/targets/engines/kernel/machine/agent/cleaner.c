/* The cleaner of NILFS2, by the library of nilfs-utils, which its daemon calls alike. Without that
   library (the macro NILFS_UTILS) there is none.

   What no snapshot needs, and is not of the newest checkpoint, is not kept: the daemon's protection
   period is 0 here. */

#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifdef NILFS_UTILS
#include <nilfs.h>
#include <sys/stat.h>

#define SEGMENTS 512 /* at most, of the disk */
#define FEW 2 /* one in so many segments is free, or fewer: time to clean */
#define ASKED 16 /* segments at once: each time costs about one */
#define EACH 4 /* of a cleaner that is running: what it moves takes space for a moment */

/* From libnilfsgc, whose header is not installed. */
ssize_t nilfs_reclaim_segment(struct nilfs *, __u64 *, size_t, __u64, nilfs_cno_t);
extern void (*nilfs_gc_logger)(int, const char *, ...);

static void silent(int priority, const char *format, ...) {
    (void)priority, (void)format;
}

/* The oldest segments that can be cleaned, up to `most`: how many there are. */
static int oldest(struct nilfs_suinfo *segments, ssize_t count, __u64 *chosen, int most) {
    int found = 0;
    for (ssize_t next = 0; found < most && next >= 0; found += next >= 0) {
        next = -1;
        for (ssize_t i = 0; i < count; i++)
            if (nilfs_suinfo_dirty(&segments[i]) && !nilfs_suinfo_active(&segments[i]) &&
                !nilfs_suinfo_error(&segments[i]) &&
                (next < 0 || segments[i].sui_lastmod < segments[next].sui_lastmod))
                next = i;
        if (next >= 0) {
            chosen[found] = next;
            segments[next].sui_flags = 0; /* chosen */
        }
    }
    return found;
}

/* Have the superblocks written: no segment is cleaned that is younger than the older of the two. */
static int shrink_protected(const char *folder) {
    int root = open(folder, O_RDONLY | O_CLOEXEC), unused = 0;
    if (root < 0)
        return -1;
    int result = ioctl(root, FIFREEZE, &unused) || ioctl(root, FITHAW, &unused), saved = errno;
    close(root);
    errno = saved;
    return result ? -1 : 0;
}

/* Clean up to `most` segments at once, the oldest first, but none while more than one in `share`
   are free; 0 for any share. Return how many were cleaned, or -1. */
static ssize_t clean(const char *device, const char *folder, int most, unsigned share) {
    struct nilfs *nilfs =
        nilfs_open(device, NULL, NILFS_OPEN_RAW | NILFS_OPEN_RDWR | NILFS_OPEN_GCLK);
    if (!nilfs)
        return -1;
    struct nilfs_suinfo segments[SEGMENTS];
    struct nilfs_sustat usage;
    struct nilfs_cpstat checkpoints;
    __u64 chosen[ASKED];
    ssize_t cleaned = 0;
    for (int tries = 2; tries-- && !cleaned;) {
        ssize_t count = nilfs_get_suinfo(nilfs, 0, segments, SEGMENTS);
        if (count < 0 || nilfs_get_sustat(nilfs, &usage) || nilfs_get_cpstat(nilfs, &checkpoints)) {
            cleaned = -1;
        } else if (!share || usage.ss_ncleansegs <= usage.ss_nsegs / share) {
            int found = oldest(segments, count, chosen, most);
            if (found)
                cleaned = nilfs_reclaim_segment(nilfs, chosen, found, usage.ss_prot_seq,
                                                checkpoints.cs_cno);
            if (!cleaned && tries && shrink_protected(folder))
                cleaned = -1;
        }
    }
    int saved = errno;
    nilfs_close(nilfs);
    errno = saved;
    return cleaned;
}

/* nilfs-clean DEVICE FOLDER: answers how many segments were cleaned. */
static int ask(struct request *request) {
    mkdir("/dev/shm", 0777); /* for the semaphore that keeps others from cleaning */
    nilfs_gc_logger = silent;
    ssize_t cleaned = clean(request->word[1], request->word[2], ASKED, 0);
    if (cleaned < 0)
        return -1;
    snprintf(request->value, VALUE, "%zd", cleaned);
    return 0;
}

static struct {
    pthread_t thread;
    int on;
    useconds_t pause;
    char device[64], folder[64];
} running;

static void *go_on(void *none) {
    while (__atomic_load_n(&running.on, __ATOMIC_SEQ_CST)) {
        clean(running.device, running.folder, EACH, FEW);
        usleep(running.pause);
    }
    return none;
}

/* nilfs-cleaner DEVICE FOLDER MILLISECONDS: from now on, clean EACH segments if few are free, and
   pause, again and again.
   nilfs-cleaner off: end this. */
static int keep_running(struct request *request) {
    if (running.on) {
        __atomic_store_n(&running.on, 0, __ATOMIC_SEQ_CST);
        pthread_join(running.thread, NULL);
    }
    if (request->count < 4)
        return 0;
    mkdir("/dev/shm", 0777);
    nilfs_gc_logger = silent;
    snprintf(running.device, sizeof running.device, "%s", request->word[1]);
    snprintf(running.folder, sizeof running.folder, "%s", request->word[2]);
    running.pause = 1000 * atoi(request->word[3]);
    running.on = 1;
    int failed = pthread_create(&running.thread, NULL, go_on, NULL);
    running.on = !failed;
    return failed ? (errno = failed, -1) : 0;
}
#else
static int ask(struct request *request) {
    (void)request;
    return errno = ENOSYS, -1;
}

static int keep_running(struct request *request) {
    return ask(request);
}
#endif

const struct named cleaner_verbs[] = {
    {"nilfs-clean", 2, ask}, {"nilfs-cleaner", 1, keep_running}, {NULL, 0, NULL}};
