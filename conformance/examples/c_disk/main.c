/* A virtual disk with snapshots in memory: an honest target in C. It takes eight requests at a
 * time, each in a thread of its own: version 2 of the dialogue.
 *
 *     cc -O2 -Wall -Wextra -pthread -o c-disk conformance/examples/c_disk/main.c
 *     conformance run --target exec:./c-disk
 */
#include "dialogue.h"

#define BLOCK 512 /* bytes */
#define HELLO                                                                              \
    "\"ok\":true,\"name\":\"c-disk\",\"version\":\"2\",\"block_size\":512,"                \
    "\"protocol\":2,\"in_flight\":8,\"atomic\":\"request\","                                \
    "\"crash_profile\":\"ack\",\"capabilities\":[\"unmap\",\"flush\",\"snapshot\","        \
    "\"delete\",\"revert\",\"crash\",\"restart\"]"

struct view {
    char name[TEXT_BYTES];
    unsigned char *data;
    struct view *next;
};

static long long blocks;        /* of the disk */
static unsigned char *live;     /* the live disk */
static struct view *snapshots;  /* a list */
static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER; /* guards all of it: a request is a step */
static pthread_cond_t landed = PTHREAD_COND_INITIALIZER;
static int flying; /* requests in threads; the mutex guards it, too */

static void *allocated(size_t bytes)
{
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory)
        abort();
    return memory;
}

static struct view **find(const char *name)
{
    struct view **at = &snapshots;
    while (*at && strcmp((*at)->name, name))
        at = &(*at)->next;
    return at;
}

static void drop(struct view **at)
{
    struct view *gone = *at;
    *at = gone->next;
    free(gone->data);
    free(gone);
}

static void create(long long count)
{
    while (snapshots)
        drop(&snapshots);
    free(live);
    blocks = count;
    live = allocated((size_t)count * BLOCK);
}

static void snapshot(const char *name)
{
    struct view *taken = allocated(sizeof *taken);
    strcpy(taken->name, name);
    taken->data = allocated((size_t)blocks * BLOCK);
    memcpy(taken->data, live, (size_t)blocks * BLOCK);
    taken->next = snapshots;
    snapshots = taken;
}

static int good_name(const char *name)
{
    size_t length = strlen(name);
    return length >= 1 && length <= 64 &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
               length;
}

static int inside(long long lba, long long count)
{
    return lba >= 0 && count >= 0 && lba <= blocks && count <= blocks - lba;
}

/* Requests that are about a snapshot. */
static void about_snapshot(const struct request *q)
{
    struct view **at = find(q->name);
    if (!strcmp(q->op, "snapshot")) {
        if (!good_name(q->name))
            answer_refusal(q, "bad-request");
        else if (*at)
            answer_refusal(q, "snapshot-exists");
        else {
            snapshot(q->name);
            answer_ok(q);
        }
    } else if (!*at)
        answer_refusal(q, "no-such-snapshot");
    else {
        if (!strcmp(q->op, "delete"))
            drop(at);
        else /* revert */
            memcpy(live, (*at)->data, (size_t)blocks * BLOCK);
        answer_ok(q);
    }
}

/* Requests that are about blocks. */
static void about_blocks(const struct request *q)
{
    int writes = !strcmp(q->op, "write");
    long long count = writes ? (long long)(q->data_bytes / BLOCK) : q->count;
    unsigned char *view = live;
    if (q->has_name) {
        struct view *found = *find(q->name);
        if (!found) {
            answer_refusal(q, "no-such-snapshot");
            return;
        }
        view = found->data;
    }
    if (!inside(q->lba, count)) {
        answer_refusal(q, "out-of-range");
        return;
    }
    unsigned char *place = view + q->lba * BLOCK;
    size_t bytes = (size_t)count * BLOCK;
    if (!strcmp(q->op, "read")) {
        answer_data(q, place, bytes);
        return;
    }
    if (writes)
        memcpy(place, q->data, bytes);
    else /* unmap */
        memset(place, 0, bytes);
    answer_ok(q);
}

static int is_one_of(const char *op, const char *const *names)
{
    for (; *names; names++)
        if (!strcmp(op, *names))
            return 1;
    return 0;
}

/* Carry out one request. */
static void serve(const struct request *q)
{
    static const char *const block_ops[] = {"read", "write", "unmap", NULL};
    static const char *const snapshot_ops[] = {"snapshot", "delete", "revert", NULL};
    static const char *const idle_ops[] = {"flush", "crash", "restart", NULL}; /* all is in memory */
    if (!strcmp(q->op, "create")) {
        create(q->blocks);
        answer_ok(q);
    } else if (is_one_of(q->op, block_ops))
        about_blocks(q);
    else if (is_one_of(q->op, snapshot_ops))
        about_snapshot(q);
    else if (is_one_of(q->op, idle_ops))
        answer_ok(q);
    else
        answer_refusal(q, "unsupported");
}

static void *in_thread(void *request)
{
    pthread_mutex_lock(&disk);
    serve(request);
    flying--;
    pthread_cond_signal(&landed);
    pthread_mutex_unlock(&disk);
    free_request(request);
    return NULL;
}

int main(void)
{
    struct request *q;
    while ((q = read_request())) {
        int in_flight = q->has_id && strcmp(q->op, "create") && strcmp(q->op, "crash");
        pthread_t thread;
        pthread_mutex_lock(&disk);
        flying += in_flight;
        pthread_mutex_unlock(&disk);
        if (in_flight && !pthread_create(&thread, NULL, in_thread, q)) {
            pthread_detach(thread);
            continue;
        }
        pthread_mutex_lock(&disk);
        flying -= in_flight;
        if (!strcmp(q->op, "crash")) { /* nothing takes effect after it */
            cut_power(q);
            while (flying)
                pthread_cond_wait(&landed, &disk);
        }
        if (!strcmp(q->op, "hello"))
            answer(q, HELLO, NULL, 0);
        else
            serve(q);
        pthread_mutex_unlock(&disk);
        free_request(q);
    }
    pthread_mutex_lock(&disk);
    while (flying)
        pthread_cond_wait(&landed, &disk);
    pthread_mutex_unlock(&disk);
    return 0;
}
