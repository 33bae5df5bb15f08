/* Who may connect: a ZAP handler (ZeroMQ's RFC 27) that lets in members by their announced keys. */

#ifndef DOOR_H
#define DOOR_H

#include "directory.h"

struct newcomer {
    struct newcomer *next;
    double since;
    size_t sizes[2];
    uint8_t route[2][255]; /* of the request: whom the answer goes to, and its number */
    char public_digits[65];
};

struct door {
    void *socket;
    struct newcomer *waiting; /* keys that nobody has announced yet */
};

/* Before anybody can connect. */
void open_door(struct door *door, void *context);

/* Take requests in, and answer those that can be answered. A connection then has its member's uid
   as its User-Id. */
void serve_door(struct door *door, const struct directory *directory);

#endif
