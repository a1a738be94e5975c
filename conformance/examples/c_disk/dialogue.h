/* The dialogue of the conformance kit in C: read a request per line, write an answer per line.
 *
 * A request is one JSON object on one line, all of whose values are strings or integers:
 *
 *     struct request q;
 *     while (read_request(&q))
 *         if (!strcmp(q.op, "flush")) { my_flush(); answer_ok(); }
 *         else ...
 *     return 0;
 *
 * docs/traces.md lists the requests. This header needs the C library only, and keeps one request
 * and one answer in memory. Each answer function writes one line to stdout and flushes it.
 */
#ifndef CONFORMANCE_DIALOGUE_H
#define CONFORMANCE_DIALOGUE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 512 /* longest operation or name that is kept; a longer name is cut short */

struct request {
    char op[TEXT_BYTES];
    char name[TEXT_BYTES]; /* of a snapshot: the fields "name" and "view" */
    int has_name;          /* 0: a read of the live disk */
    long long lba, count, blocks;
    unsigned char *data; /* of a write, decoded; valid until the next request */
    size_t data_bytes;
};

static int base64_value(int c)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c ? strchr(alphabet, c) : NULL;
    return found ? (int)(found - alphabet) : -1;
}

/* Decode base64 in place; return the number of bytes. */
static size_t base64_decode(const char *text, unsigned char *out)
{
    uint32_t bits = 0;
    int held = 0;
    size_t bytes = 0;
    for (; base64_value(*text) >= 0; text++) {
        bits = bits << 6 | (uint32_t)base64_value(*text);
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

/* Copy a JSON string. An escape becomes `?`: no name or operation of the contract has one. */
static int copy_string(char *line, const char *key, char *out)
{
    char *value = field(line, key);
    size_t length = 0;
    if (!value || *value != '"')
        return 0;
    for (value++; *value && *value != '"'; value++) {
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

static long long integer(char *line, const char *key)
{
    char *value = field(line, key);
    return value ? strtoll(value, NULL, 10) : 0;
}

/* Read a request; return 0 at the end of the dialogue. */
static int read_request(struct request *q)
{
    static char *line;
    static size_t size;
    memset(q, 0, sizeof *q);
    if (getline(&line, &size, stdin) < 0 || !copy_string(line, "op", q->op))
        return 0;
    q->has_name = copy_string(line, "name", q->name) || copy_string(line, "view", q->name);
    q->lba = integer(line, "lba");
    q->count = integer(line, "count");
    q->blocks = integer(line, "blocks");
    char *data = field(line, "data");
    if (data && *data == '"') {
        q->data = (unsigned char *)data;
        q->data_bytes = base64_decode(data + 1, q->data);
    }
    return strcmp(q->op, "bye") != 0;
}

static void answer(const char *json)
{
    puts(json);
    fflush(stdout);
}

static void answer_ok(void) { answer("{\"ok\":true}"); }

/* Refuse a request with an error code of the contract, such as "out-of-range". */
static void answer_refusal(const char *code)
{
    printf("{\"ok\":false,\"error\":\"%s\"}\n", code);
    fflush(stdout);
}

/* Answer a read with its data. */
static void answer_data(const unsigned char *data, size_t bytes)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    fputs("{\"ok\":true,\"data\":\"", stdout);
    for (size_t at = 0; at < bytes; at += 3) {
        size_t left = bytes - at;
        uint32_t bits = (uint32_t)data[at] << 16 | (left > 1 ? (uint32_t)data[at + 1] << 8 : 0) |
                        (left > 2 ? data[at + 2] : 0);
        putchar(alphabet[bits >> 18]);
        putchar(alphabet[bits >> 12 & 63]);
        putchar(left > 1 ? alphabet[bits >> 6 & 63] : '=');
        putchar(left > 2 ? alphabet[bits & 63] : '=');
    }
    fputs("\"}\n", stdout);
    fflush(stdout);
}

#endif
