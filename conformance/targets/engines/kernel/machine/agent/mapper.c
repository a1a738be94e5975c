/* Device-mapper devices of one target each, by the ioctls of <linux/dm-ioctl.h>. */

#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define ROOM 16384

static struct dm_ioctl *named(const char *name) {
    static __thread char room[ROOM] __attribute__((aligned(16)));
    struct dm_ioctl *message = (struct dm_ioctl *)room;
    memset(room, 0, sizeof room);
    message->version[0] = DM_VERSION_MAJOR;
    message->data_size = ROOM;
    message->data_start = sizeof *message;
    snprintf(message->name, sizeof message->name, "%s", name);
    return message;
}

static int ask(unsigned long command, struct dm_ioctl *message) {
    static __thread int control = -1;
    if (control < 0 && (control = open("/dev/mapper/control", O_RDWR | O_CLOEXEC)) < 0)
        return -1;
    return ioctl(control, command, message);
}

/* dm-create NAME MINOR: an empty device that is /dev/dm-MINOR. */
static int create(struct request *request) {
    struct dm_ioctl *message = named(request->word[1]);
    struct stat device;
    if (stat("/dev/mapper/control", &device))
        return -1;
    message->flags = DM_PERSISTENT_DEV_FLAG;
    FILE *majors = fopen("/proc/devices", "r");
    char line[128];
    unsigned major = 0;
    while (majors && fgets(line, sizeof line, majors))
        if (strstr(line, "device-mapper"))
            major = atoi(line);
    if (majors)
        fclose(majors);
    message->dev = makedev(major, atoi(request->word[2]));
    return ask(DM_DEV_CREATE, message);
}

/* dm-load NAME SECTORS TARGET PARAMETERS...: the table to come into force at the next resume. */
static int load(struct request *request) {
    struct dm_ioctl *message = named(request->word[1]);
    struct dm_target_spec *target = (void *)((char *)message + message->data_start);
    char *parameters = (char *)(target + 1);
    message->target_count = 1;
    target->length = strtoull(request->word[2], NULL, 10);
    snprintf(target->target_type, sizeof target->target_type, "%s", request->word[3]);
    for (int i = 4; i < request->count; i++)
        strcat(strcat(parameters, i > 4 ? " " : ""), request->word[i]);
    target->next = (sizeof *target + strlen(parameters) + 1 + 7) & ~7u;
    return ask(DM_TABLE_LOAD, message);
}

static int suspend(struct request *request) {
    struct dm_ioctl *message = named(request->word[1]);
    message->flags = DM_SUSPEND_FLAG;
    for (int i = 2; i < request->count; i++) {
        if (!strcmp(request->word[i], "noflush"))
            message->flags |= DM_NOFLUSH_FLAG;
        if (!strcmp(request->word[i], "nolockfs"))
            message->flags |= DM_SKIP_LOCKFS_FLAG;
    }
    return ask(DM_DEV_SUSPEND, message);
}

static int resume(struct request *request) {
    return ask(DM_DEV_SUSPEND, named(request->word[1]));
}

static int drop(struct request *request) {
    return ask(DM_DEV_REMOVE, named(request->word[1]));
}

/* dm-message NAME TEXT... */
static int send(struct request *request) {
    struct dm_ioctl *message = named(request->word[1]);
    struct dm_target_msg *text = (struct dm_target_msg *)((char *)message + message->data_start);
    for (int i = 2; i < request->count; i++)
        strcat(strcat(text->message, i > 2 ? " " : ""), request->word[i]);
    return ask(DM_TARGET_MSG, message);
}

/* dm-status NAME: what the target says of itself. */
static int status(struct request *request) {
    struct dm_ioctl *message = named(request->word[1]);
    message->flags = request->count > 2 ? DM_NOFLUSH_FLAG : 0;
    if (ask(DM_TABLE_STATUS, message))
        return -1;
    struct dm_target_spec *target = (void *)((char *)message + message->data_start);
    snprintf(request->value, VALUE, "%s", message->target_count ? (char *)(target + 1) : "");
    return 0;
}

const struct named mapper_verbs[] = {
    {"dm-create", 2, create},   {"dm-load", 3, load},   {"dm-suspend", 1, suspend},
    {"dm-resume", 1, resume},   {"dm-remove", 1, drop}, {"dm-message", 2, send},
    {"dm-status", 1, status},   {NULL, 0, NULL},
};
