/* Packets: the messages of SFM, as bytes. See docs/wire-format.md. */

#ifndef PACKET_H
#define PACKET_H

#include "common.h"

enum { PACKET_HEADER = 32 };

/* A packet that was checked. */
struct packet {
    const uint8_t *bytes;
    size_t size;
    uint64_t context; /* not 0: it is the library's, and not the user's */
    uint32_t count, table, buffers;
};

/* Check a packet whole; NULL if it is right, or else what is wrong with it. */
const char *check_packet(const uint8_t *bytes, size_t size, struct packet *packet);

/* Whether it has an attribute with this name. */
bool has_attribute(const struct packet *packet, const char *name);

/* The same attributes, sent back by `name`: `dest` is its `src`. NULL if it has no `src`. */
struct piece *echo_of(const struct packet *packet, const char *name);

#endif
