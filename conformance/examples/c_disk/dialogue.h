/* The dialogue of the conformance kit in C or C++: a request per line in, an answer per line out.
 *
 *     struct request *q;
 *     while ((q = read_request())) {
 *         if (!strcmp(q->op, "flush")) { my_flush(); answer_ok(q); }
 *         else ...
 *         free_request(q);
 *     }
 * docs/traces.md lists the requests. An answer function writes one line with the id of the request
 * and flushes it; with several requests in flight (version 2) any thread may call it. Before a crash
 * is answered call cut_power(): what was read before is not answered any more. From a `cut` to the
 * crash the engine itself must answer nothing.
 */
#ifndef CONFORMANCE_DIALOGUE_H
#define CONFORMANCE_DIALOGUE_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 512 /* longest operation or name that is kept; a longer name is cut short */

struct request {
    long long id;
    int has_id; /* version 2 */
    int life;   /* how many power cuts there were when it was read */
    char op[TEXT_BYTES];
    char name[TEXT_BYTES]; /* of a snapshot: the fields "name" and "view" */
    int has_name;          /* 0: a read of the live disk */
    long long lba, count, blocks;
    int fua;               /* a write that is durable when it is answered */
    long long device;      /* of fail, return and replace */
    char mode[TEXT_BYTES]; /* of fail: "absent" or "degraded" */
    long long seconds;     /* of tick */
    long long cut_after;   /* the power fails at this device write from now on; 0: it does not */
    long long cut_seed;    /* chooses what the media keep then */
    long long wait;        /* stay in flight until so many later requests were answered */
    char *options;         /* of create, if hello lists `knobs`: see option() */
    unsigned char *data;   /* of a write, decoded: `data_bytes` of them */
    size_t data_bytes;
    char *line; /* as it was read: `data` and `options` point into it */
};

static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER; /* guards stdout and `life` */
static int life;
static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static size_t base64_decode(const char *text, unsigned char *out) /* maybe in place */
{
    uint32_t bits = 0;
    int held = 0;
    size_t bytes = 0;
    for (const char *found; *text && (found = strchr(alphabet, *text)); text++) {
        bits = bits << 6 | (uint32_t)(found - alphabet);
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[bytes++] = (unsigned char)(bits >> held);
        }
    }
    return bytes;
}

/* Find the value of a field: a pointer behind `"key":`, or NULL. Skips strings on its way. */
static char *field(char *line, const char *key)
{
    size_t length = strlen(key);
    for (char *at = line; *at; at++) {
        if (*at != '"')
            continue;
        char *start = ++at;
        for (; *at && *at != '"'; at++)
            if (*at == '\\' && at[1])
                at++;
        if (!*at)
            return NULL;
        char *after = at + 1 + strspn(at + 1, " ");
        if (*after == ':' && (size_t)(at - start) == length && !strncmp(start, key, length))
            return after + 1 + strspn(after + 1, " ");
    }
    return NULL;
}

/* Copy a string, integer or boolean, unless it is null. An escape becomes `?`: no name has one. */
static int copy_value(char *value, char *out)
{
    if (!value || *value == 'n')
        return 0;
    size_t length = 0;
    const char *ends = *value == '"' ? "\"" : ",} ";
    for (value += *value == '"'; *value && !strchr(ends, *value); value++) {
        char c = *value;
        if (c == '\\' && value[1]) {
            value++;
            c = '?';
        }
        if (length < TEXT_BYTES - 1)
            out[length++] = c;
    }
    out[length] = 0;
    return 1;
}

/* Copy the value of an option of `create` into TEXT_BYTES bytes; return 0 if it has none. */
static inline int option(const struct request *q, const char *name, char *out)
{
    return copy_value(q->options ? field(q->options, name) : NULL, out);
}

static long long integer(char *line, const char *key)
{
    char *value = field(line, key);
    return value ? strtoll(value, NULL, 10) : 0;
}

static void free_request(struct request *q)
{
    if (q)
        free(q->line);
    free(q);
}

/* Read a request; return NULL at the end of the dialogue. */
static struct request *read_request(void)
{
    struct request *q = (struct request *)calloc(1, sizeof *q);
    size_t size = 0;
    if (!q || getline(&q->line, &size, stdin) < 0 || !copy_value(field(q->line, "op"), q->op) ||
        !strcmp(q->op, "bye")) {
        free_request(q);
        return NULL;
    }
    char *line = q->line;
    pthread_mutex_lock(&printing);
    q->life = life;
    pthread_mutex_unlock(&printing);
    q->has_id = field(line, "id") != NULL;
    q->id = integer(line, "id");
    q->has_name = copy_value(field(line, "name"), q->name) || copy_value(field(line, "view"), q->name);
    q->lba = integer(line, "lba");
    q->count = integer(line, "count");
    q->blocks = integer(line, "blocks");
    q->device = integer(line, "device");
    q->seconds = integer(line, "seconds");
    q->wait = integer(line, "wait");
    q->options = field(line, "options");
    copy_value(field(line, "mode"), q->mode);
    char *cut = field(line, "cut"), *fua = field(line, "fua");
    q->cut_after = cut ? integer(cut, "after") : 0;
    q->cut_seed = cut ? integer(cut, "seed") : 0;
    q->fua = fua && *fua == 't';
    char *data = field(line, "data"); /* last: decoding it in place ends the text */
    if (data && *data == '"') {
        q->data = (unsigned char *)data;
        q->data_bytes = base64_decode(data + 1, q->data);
    }
    return q;
}

/* From now on, requests that were read before this one are not answered. */
static void cut_power(struct request *crash)
{
    pthread_mutex_lock(&printing);
    crash->life = ++life;
    pthread_mutex_unlock(&printing);
}

static void print_base64(const unsigned char *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 3) {
        size_t left = bytes - at;
        uint32_t bits = (uint32_t)data[at] << 16 | (left > 1 ? (uint32_t)data[at + 1] << 8 : 0) |
                        (left > 2 ? data[at + 2] : 0);
        putchar(alphabet[bits >> 18]);
        putchar(alphabet[bits >> 12 & 63]);
        putchar(left > 1 ? alphabet[bits >> 6 & 63] : '=');
        putchar(left > 2 ? alphabet[bits & 63] : '=');
    }
}

/* Print `{"ok":...` with these fields of JSON, and with data unless it is NULL. */
static void answer(const struct request *q, const char *fields, const unsigned char *data,
                   size_t bytes)
{
    pthread_mutex_lock(&printing);
    if (q->life == life) {
        printf("{%s", fields);
        if (q->has_id)
            printf(",\"id\":%lld", q->id);
        if (data) {
            fputs(",\"data\":\"", stdout);
            print_base64(data, bytes);
            putchar('"');
        }
        puts("}");
        fflush(stdout);
    }
    pthread_mutex_unlock(&printing);
}

static void answer_ok(const struct request *q) { answer(q, "\"ok\":true", NULL, 0); }

/* Refuse a request with an error code of the contract, such as "out-of-range". */
static void answer_refusal(const struct request *q, const char *code)
{
    char fields[128];
    snprintf(fields, sizeof fields, "\"ok\":false,\"error\":\"%s\"", code);
    answer(q, fields, NULL, 0);
}

/* Answer a read with its data. */
static void answer_data(const struct request *q, const unsigned char *data, size_t bytes)
{
    answer(q, "\"ok\":true", data, bytes);
}

#endif
