/* A key that nobody has announced waits for a while: its member may have joined only just now. */

#include "door.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum { PARTS = 9, KEY = 32 };
static const double PATIENCE = 2; /* seconds */

void open_door(struct door *door, void *context)
{
    door->waiting = NULL;
    door->socket = zmq_socket(context, ZMQ_ROUTER);
    if (!door->socket || zmq_bind(door->socket, "inproc://zeromq.zap.01") != 0)
        fail("no ZAP handler can be made: %s", zmq_strerror(zmq_errno()));
}

static void answer(struct door *door, const struct newcomer *newcomer, const struct member *member)
{
    const char *code = member ? "200" : "300", *why = member ? "OK" : "unknown", *user = member ? member->uid : "";
    const char *parts[] = {"", "1.0", NULL, code, why, user, ""};
    zmq_send(door->socket, newcomer->route[0], newcomer->sizes[0], ZMQ_SNDMORE);
    for (int part = 0; part < 7; part++) {
        const void *bytes = part == 2 ? (const void *)newcomer->route[1] : parts[part];
        size_t size = part == 2 ? newcomer->sizes[1] : strlen(parts[part]);
        zmq_send(door->socket, bytes, size, part < 6 ? ZMQ_SNDMORE : 0);
    }
}

/* Route, empty, version, number, domain, address, identity, mechanism, key. False if none is there. */
static bool read_request(struct door *door, struct newcomer *newcomer)
{
    int part = 0, more = 1;
    for (; more; part++) {
        uint8_t bytes[255];
        int size = zmq_recv(door->socket, bytes, sizeof bytes, ZMQ_DONTWAIT);
        if (size < 0)
            return false;
        size_t length = (size_t)size < sizeof bytes ? (size_t)size : sizeof bytes;
        if (part == 0 || part == 3) {
            memcpy(newcomer->route[part / 3], bytes, length);
            newcomer->sizes[part / 3] = length;
        } else if (part == PARTS - 1 && length == KEY) {
            sodium_bin2hex(newcomer->public_digits, sizeof newcomer->public_digits, bytes, KEY);
        }
        size_t option = sizeof more;
        zmq_getsockopt(door->socket, ZMQ_RCVMORE, &more, &option);
    }
    return true;
}

void serve_door(struct door *door, const struct directory *directory)
{
    struct newcomer request = {.since = now()};
    while (read_request(door, &request)) {
        struct newcomer *newcomer = resized(NULL, sizeof *newcomer);
        *newcomer = request;
        newcomer->next = door->waiting;
        door->waiting = newcomer;
        memset(&request, 0, sizeof request);
        request.since = now();
    }
    for (struct newcomer **at = &door->waiting; *at;) {
        struct newcomer *newcomer = *at;
        const struct member *member = NULL;
        if (newcomer->public_digits[0])
            member = find_member(directory, newcomer->public_digits);
        if (!member && now() < newcomer->since + PATIENCE) {
            at = &newcomer->next;
            continue;
        }
        answer(door, newcomer, member);
        *at = newcomer->next;
        free(newcomer);
    }
}
