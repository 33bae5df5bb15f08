/* What goes to one member and comes from it: frames, once and in order, over any number of
   connections. See docs/wire-format.md. */

#ifndef LINK_H
#define LINK_H

#include "common.h"

enum {
    VERSION = 1,         /* of the wire format */
    HEADER = 64,         /* bytes of a frame's header, and of what stands before its body */
    INNER = 24,
    LENGTH = 8,          /* bytes of the length of a large packet */
    LARGEST_BODY = 512 << 10,
    LARGEST_FRAME = HEADER + INNER + LARGEST_BODY,
    OVERHEAD = 128,      /* what a message costs beside its bytes */
    BUFFERING = 64 << 20 /* cost of what may wait at a receiver */
};

/* A connection: a DEALER, or the ROUTER and whom it is to reach. */
struct way {
    void *socket; /* NULL: there is none */
    uint8_t route[255];
    size_t route_size;
};

struct link {
    struct link *next;
    char uid[33];
    char *name, *address; /* the member's name, and this process's address */
    uint8_t own[16], peer[16];
    uint32_t site;
    struct way way;       /* frames are sent there now */
    const char *lost;     /* why nothing more goes to the member or comes from it; NULL: it does */
    double dialed_at, asked_at;
    struct piece *reply;  /* waits until the member has room for it */
    struct queue messages;
    uint64_t waiting;     /* cost of `messages` */
    /* out */
    uint64_t counter, number, question, sent, taken;
    struct queue unacked;
    bool is_held, has_begun;
    /* in */
    uint64_t arrived, their_question, received[2]; /* by account: of messages, of those with a context */
    struct piece *assembly;
    uint64_t filled;      /* bytes of the assembly that have come */
};

struct link *new_link(const char *uid, const char *name, const char *own_uid, const char *address, const char *site);
void free_link(struct link *link);

/* Send on this connection from now on; `broke`: since the former one is over. */
void use_way(struct link *link, const struct way *way, bool broke);

/* Act on a frame that came on this connection. False if its sender speaks another version, and was told. */
bool take_frame(struct link *link, const struct way *way, const uint8_t *frame, size_t size);

/* Say that what came made no sense, and accept nothing more. */
void give_up(struct link *link, const char *why);

/* The next message that has come, whose room the member gets back; NULL if there is none. */
struct piece *next_message(struct link *link);

/* Whether the member has room for so many bytes. */
bool may_send(const struct link *link, size_t size);
void send_packet(struct link *link, const struct piece *packet);

/* Send a frame that is not numbered, if there is a connection. */
void put(struct link *link, char kind, uint64_t number, bool flag);

/* The same, on this connection and with a body. */
void put_with(struct link *link, const struct way *way, char kind, uint64_t number, bool flag, const char *body);

/* Send again what has not arrived. */
void send_missing(struct link *link);

/* Whether frames of this kind are numbered, and sent again. */
bool is_numbered(char kind);

#endif
