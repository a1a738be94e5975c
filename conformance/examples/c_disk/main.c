/* A virtual disk with snapshots in memory: an honest target in C.
 *
 *     cc -O2 -Wall -Wextra -o c-disk conformance/examples/c_disk/main.c
 *     conformance run --target exec:./c-disk
 */
#include "dialogue.h"

#define BLOCK 512 /* bytes */
#define HELLO                                                                              \
    "{\"ok\":true,\"name\":\"c-disk\",\"version\":\"1\",\"block_size\":512,"               \
    "\"crash_profile\":\"ack\",\"capabilities\":[\"unmap\",\"flush\",\"snapshot\","        \
    "\"delete\",\"revert\",\"crash\",\"restart\"]}"

struct view {
    char name[TEXT_BYTES];
    unsigned char *data;
    struct view *next;
};

static long long blocks;        /* of the disk */
static unsigned char *live;     /* the live disk */
static struct view *snapshots;  /* a list */

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
            answer_refusal("bad-request");
        else if (*at)
            answer_refusal("snapshot-exists");
        else {
            snapshot(q->name);
            answer_ok();
        }
    } else if (!*at)
        answer_refusal("no-such-snapshot");
    else {
        if (!strcmp(q->op, "delete"))
            drop(at);
        else /* revert */
            memcpy(live, (*at)->data, (size_t)blocks * BLOCK);
        answer_ok();
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
            answer_refusal("no-such-snapshot");
            return;
        }
        view = found->data;
    }
    if (!inside(q->lba, count)) {
        answer_refusal("out-of-range");
        return;
    }
    unsigned char *place = view + q->lba * BLOCK;
    size_t bytes = (size_t)count * BLOCK;
    if (!strcmp(q->op, "read")) {
        answer_data(place, bytes);
        return;
    }
    if (writes)
        memcpy(place, q->data, bytes);
    else /* unmap */
        memset(place, 0, bytes);
    answer_ok();
}

static int is_one_of(const char *op, const char *const *names)
{
    for (; *names; names++)
        if (!strcmp(op, *names))
            return 1;
    return 0;
}

int main(void)
{
    static const char *const block_ops[] = {"read", "write", "unmap", NULL};
    static const char *const snapshot_ops[] = {"snapshot", "delete", "revert", NULL};
    static const char *const idle_ops[] = {"flush", "crash", "restart", NULL}; /* all is in memory */
    struct request q;
    while (read_request(&q)) {
        if (!strcmp(q.op, "hello"))
            answer(HELLO);
        else if (!strcmp(q.op, "create")) {
            create(q.blocks);
            answer_ok();
        } else if (is_one_of(q.op, block_ops))
            about_blocks(&q);
        else if (is_one_of(q.op, snapshot_ops))
            about_snapshot(&q);
        else if (is_one_of(q.op, idle_ops))
            answer_ok();
        else
            answer_refusal("unsupported");
    }
    return 0;
}
