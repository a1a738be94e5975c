/* File systems: mounts, files, and the snapshots of NILFS2 and btrfs by their ioctls. */

#define _GNU_SOURCE
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/nilfs2_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* fs-mount DEVICE FOLDER TYPE [ro|rw [OPTIONS]] */
static int attach(struct request *request) {
    mkdir(request->word[2], 0700);
    int readonly = request->count > 4 && !strcmp(request->word[4], "ro");
    return mount(request->word[1], request->word[2], request->word[3], readonly ? MS_RDONLY : 0,
                 request->count > 5 ? request->word[5] : "");
}

static int detach(struct request *request) {
    return umount2(request->word[1], 0);
}

/* fs-file PATH LENGTH: a file of so many bytes, all a hole, durable with its name. */
static int make(struct request *request) {
    int file = open(request->word[1], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return -1;
    int result = ftruncate(file, strtoll(request->word[2], NULL, 10)) || fsync(file);
    close(file);
    return result ? -1 : 0;
}

static int on_folder(const char *path, unsigned long command, void *argument) {
    int folder = open(path, O_RDONLY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    int result = ioctl(folder, command, argument), saved = errno;
    close(folder);
    errno = saved;
    return result < 0 ? -1 : 0;
}

static int sync_all(struct request *request) {
    int folder = open(request->word[1], O_RDONLY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    int result = syncfs(folder);
    close(folder);
    return result;
}

static int exchange(struct request *request) {
    return renameat2(AT_FDCWD, request->word[1], AT_FDCWD, request->word[2], RENAME_EXCHANGE);
}

static int exists(struct request *request) {
    struct stat found;
    if (stat(request->word[1], &found))
        return -1;
    snprintf(request->value, VALUE, "%lld", (long long)found.st_size);
    return 0;
}

static int subvolume(struct request *request) {
    struct btrfs_ioctl_vol_args made = {0};
    snprintf(made.name, sizeof made.name, "%s", request->word[2]);
    return on_folder(request->word[1], BTRFS_IOC_SUBVOL_CREATE, &made);
}

/* btrfs-snapshot FOLDER SOURCE NAME ro|rw */
static int snapshot(struct request *request) {
    struct btrfs_ioctl_vol_args_v2 made = {0};
    made.fd = open(request->word[2], O_RDONLY | O_CLOEXEC);
    if (made.fd < 0)
        return -1;
    made.flags = strcmp(request->word[4], "ro") ? 0 : BTRFS_SUBVOL_RDONLY;
    snprintf(made.name, sizeof made.name, "%s", request->word[3]);
    int result = on_folder(request->word[1], BTRFS_IOC_SNAP_CREATE_V2, &made), saved = errno;
    close(made.fd);
    errno = saved;
    return result;
}

static int destroy(struct request *request) {
    struct btrfs_ioctl_vol_args gone = {0};
    snprintf(gone.name, sizeof gone.name, "%s", request->word[2]);
    return on_folder(request->word[1], BTRFS_IOC_SNAP_DESTROY, &gone);
}

/* nilfs-checkpoint FOLDER: make everything durable; answers the number of the newest checkpoint. */
static int checkpoint(struct request *request) {
    __u64 number = 0;
    if (on_folder(request->word[1], NILFS_IOCTL_SYNC, &number))
        return -1;
    snprintf(request->value, VALUE, "%llu", (unsigned long long)number);
    return 0;
}

/* nilfs-mode FOLDER NUMBER snapshot|checkpoint */
static int mode(struct request *request) {
    struct nilfs_cpmode changed = {strtoull(request->word[2], NULL, 10),
                                   strcmp(request->word[3], "snapshot") ? NILFS_CHECKPOINT
                                                                        : NILFS_SNAPSHOT, 0};
    return on_folder(request->word[1], NILFS_IOCTL_CHANGE_CPMODE, &changed);
}

/* nilfs-snapshots FOLDER: the numbers of all snapshots. */
static int snapshots(struct request *request) {
    struct nilfs_cpinfo found[64];
    struct nilfs_argv argument = {
        .v_base = (unsigned long)found, .v_nmembs = 64, .v_size = sizeof *found,
        .v_flags = NILFS_SNAPSHOT, .v_index = 0 /* the first snapshot */};
    memset(found, 0, sizeof found);
    if (on_folder(request->word[1], NILFS_IOCTL_GET_CPINFO, &argument))
        return -1;
    for (unsigned i = 0; i < argument.v_nmembs; i++)
        sprintf(request->value + strlen(request->value), "%llu ",
                (unsigned long long)found[i].ci_cno);
    return 0;
}

const struct named file_verbs[] = {
    {"fs-mount", 3, attach},        {"fs-umount", 1, detach},         {"fs-file", 2, make},
    {"fs-sync", 1, sync_all},       {"fs-exchange", 2, exchange},      {"fs-size", 1, exists},
    {"btrfs-subvolume", 2, subvolume},
    {"btrfs-snapshot", 4, snapshot},
    {"btrfs-destroy", 2, destroy},
    {"nilfs-checkpoint", 1, checkpoint},
    {"nilfs-mode", 3, mode},
    {"nilfs-snapshots", 1, snapshots},
    {NULL, 0, NULL},
};
