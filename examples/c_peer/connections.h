/* The sockets of this process: a ROUTER, to which others connect, and a DEALER for each connection
   that it makes itself. */

#ifndef CONNECTIONS_H
#define CONNECTIONS_H

#include "directory.h"
#include "door.h"
#include "link.h"

/* A connection that this process has made. */
struct dialed {
    struct dialed *next;
    void *socket, *report;
    char uid[33];
};

struct peer {
    void *context, *router;
    const char *name, *site;
    char address[256];
    struct directory directory;
    struct door door;
    struct link *links;
    struct dialed *dialed;
    bool is_foreign, must_stop;
};

/* Make the ROUTER, at this machine's address on the way to the directory server. */
void listen_for_members(struct peer *peer, const char *url);

/* Take in what has come, and wait for it for so many milliseconds. */
void take_in(struct peer *peer, long milliseconds);

/* Connect to a link's member, though not too often; what is missing there is sent again. */
void dial(struct peer *peer, struct link *link);

/* Close a connection that this process has made, or all those to a member. */
void hang_up(struct dialed **at);
void hang_up_on(struct peer *peer, const char *uid);

#endif
