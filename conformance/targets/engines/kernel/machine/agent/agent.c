/* PID 1 of the guest: mounts, loads the modules that the image brings, and serves requests. */

#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#define LINE 4096 /* bytes of a request */
#define LINES 8
#define DEFAULT_PORT "/dev/ttyS0"

static int load(struct request *request) {
    int module = open(request->word[1], O_RDONLY | O_CLOEXEC);
    if (module < 0)
        return -1;
    long result = syscall(SYS_finit_module, module, "", 0);
    int saved = errno;
    close(module);
    errno = saved;
    return result && errno != EEXIST ? -1 : 0;
}

/* put FILE TEXT: the words of TEXT, which are what sysfs takes, joined by spaces. */
static int put(struct request *request) {
    char text[256] = "";
    for (int i = 2; i < request->count; i++) {
        if (strlen(text) + strlen(request->word[i]) + 2 > sizeof text)
            return errno = E2BIG, -1;
        strcat(strcat(text, i > 2 ? " " : ""), request->word[i]);
    }
    int file = open(request->word[1], O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    ssize_t written = write(file, text, strlen(text));
    int saved = errno;
    close(file);
    errno = saved;
    return written < 0 ? -1 : 0;
}

/* get FILE: its first line. */
static int get(struct request *request) {
    FILE *file = fopen(request->word[1], "r");
    if (!file)
        return -1;
    if (!fgets(request->value, VALUE, file))
        request->value[0] = 0;
    fclose(file);
    request->value[strcspn(request->value, "\n")] = 0;
    return 0;
}

static const struct named own_verbs[] = {
    {"load", 1, load}, {"put", 2, put}, {"get", 1, get}, {NULL, 0, NULL}};
static const struct named *const tables[] = {own_verbs, mapper_verbs, block_verbs, file_verbs,
                                           cleaner_verbs};

static int serve(struct request *request) {
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct named *verb = tables[t]; verb->name; verb++)
            if (!strcmp(verb->name, request->word[0])) {
                if (request->count <= verb->words)
                    return errno = EINVAL, -1;
                return verb->call(request);
            }
    return errno = ENOSYS, -1;
}

static int raw_port(const char *path) {
    struct termios mode;
    int port = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (port < 0)
        return -1;
    if (!tcgetattr(port, &mode)) {
        cfmakeraw(&mode);
        tcsetattr(port, TCSANOW, &mode);
    }
    return port;
}

static void answer(int line, int port, char *words) {
    char value[VALUE] = "", text[VALUE + 64], *rest;
    struct request request = {line, 0, {NULL}, value};
    int failed = 0;
    for (char *word = strtok_r(words, " ", &rest); word && !failed;
         word = strtok_r(NULL, " ", &rest))
        if (request.count < WORDS)
            request.word[request.count++] = word;
        else
            failed = errno = E2BIG;
    if (!request.count)
        return;
    int length = failed || serve(&request)
                     ? snprintf(text, sizeof text, "error %d %s\n", errno, request.word[0])
                     : snprintf(text, sizeof text, "ok %s\n", value);
    for (int at = 0; at < length;) {
        ssize_t written = write(port, text + at, length - at);
        if (written > 0)
            at += written;
    }
}

static struct line {
    int number, port;
    pthread_t thread;
} lines[LINES];

static void *listen_on(void *argument) {
    struct line *line = argument;
    char words[LINE];
    int length = 0;
    (void)!write(line->port, "ready\n", 6);
    for (;;) {
        ssize_t got = read(line->port, words + length, sizeof words - 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        words[length += got] = 0;
        for (char *end; (end = strchr(words, '\n'));) {
            *end = 0;
            answer(line->number, line->port, words);
            length -= end + 1 - words;
            memmove(words, end + 1, length + 1);
        }
        if (length == sizeof words - 1)
            length = 0; /* a line that is too long: the host waits, and says so */
    }
    reboot(RB_POWER_OFF); /* the host has gone */
    return NULL;
}

int main(void) {
    mount("none", "/dev", "devtmpfs", 0, "");
    mount("none", "/sys", "sysfs", 0, "");
    mount("none", "/proc", "proc", 0, "");
    char words[LINE], *paths = DEFAULT_PORT, *rest;
    FILE *command_line = fopen("/proc/cmdline", "r");
    if (command_line && fgets(words, sizeof words, command_line)) {
        char *named = strstr(words, "agent_port=");
        if (named)
            paths = strtok(named + strlen("agent_port="), " \n");
    }
    char text[LINE];
    int count = 0;
    snprintf(text, sizeof text, "%s", paths);
    for (char *path = strtok_r(text, ",", &rest); path && count < LINES;
         path = strtok_r(NULL, ",", &rest)) {
        int port = raw_port(path);
        if (port < 0) {
            fprintf(stderr, "agent: %s: %s\n", path, strerror(errno));
            return 1;
        }
        lines[count] = (struct line){count, port, 0};
        count++;
    }
    for (int i = 0; i < count; i++)
        if (pthread_create(&lines[i].thread, NULL, listen_on, &lines[i]))
            return 1;
    for (;;)
        pause();
}
