/* The guest's agent: the only process of a throw-away guest whose kernel is under test.

   A request is one line of words. An answer is one line: "ok VALUE", or "error NUMBER VERB". A verb
   returns 0, or -1 with errno set, as a system call does. Bytes of blocks go through the mailbox,
   a disk whose file the host reads and writes.

   Each port is served by a thread, and has a part of the mailbox: as many requests may be in flight
   as there are ports. Requests that use the same device-mapper device, or close a file, are not in
   flight together: that is the host's to see. */

#ifndef AGENT_H
#define AGENT_H

#include <stddef.h>

#define WORDS 160
#define VALUE 2048

struct request {
    int line; /* the number of its port */
    int count;
    char *word[WORDS]; /* word[0] is the verb */
    char *value;       /* VALUE bytes for what the answer says */
};

typedef int verb(struct request *);

struct named {
    const char *name;
    int words; /* at least so many after the verb */
    verb *call;
};

/* Each table ends with a name that is NULL. */
extern const struct named mapper_verbs[], block_verbs[], file_verbs[], cleaner_verbs[];

#endif
