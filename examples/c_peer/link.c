/* What goes to a member. Numbered frames are kept until they have arrived; after a break those that
   are missing go again. */

#include "link.h"

#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum { HOPS = 8 };

static uint32_t site_number(const char *name) /* FNV-1a */
{
    uint32_t number = 0x811C9DC5;
    for (; *name; name++)
        number = (number ^ (uint8_t)*name) * 0x01000193;
    return number;
}

static void read_uid(const char *digits, uint8_t uid[16])
{
    uint8_t bytes[16];
    if (!from_hex(digits, bytes, 16))
        fail("%s is no uid", digits);
    for (int place = 0; place < 16; place++)
        uid[place] = bytes[15 - place];
}

struct link *new_link(const char *uid, const char *name, const char *own_uid, const char *address, const char *site)
{
    struct link *link = resized(NULL, sizeof *link);
    *link = (struct link){.name = printed("%s", name), .address = printed("%s", address), .site = site_number(site)};
    memcpy(link->uid, uid, 32);
    read_uid(own_uid, link->own);
    read_uid(uid, link->peer);
    return link;
}

void free_link(struct link *link)
{
    clear(&link->messages);
    clear(&link->unacked);
    free(link->assembly);
    free(link->reply);
    free(link->name);
    free(link->address);
    free(link);
}

bool is_numbered(char kind)
{
    return kind && strchr("DFPX", kind);
}

/* A frame whose body is two parts. */
static struct piece *frame_of(struct link *link, char kind, uint64_t number, bool flag, uint64_t ahead,
                              const void *front, size_t front_size, const void *body, size_t size)
{
    struct piece *frame = new_piece(HEADER + INNER + front_size + size);
    uint8_t *at = frame->bytes;
    memset(at, 0, HEADER + INNER);
    put_number(at, 4, INNER + front_size + size);
    at[4] = 'S';
    at[5] = HOPS;
    at[6] = is_numbered(kind);
    at[7] = VERSION;
    put_number(at + 8, 4, ahead < UINT32_MAX ? ahead : UINT32_MAX);
    put_number(at + 12, 4, link->site);
    put_number(at + 16, 4, link->site);
    at[20] = 1;
    memcpy(at + 24, link->own, 16);
    memcpy(at + 40, link->peer, 16);
    put_number(at + 56, 8, ++link->counter);
    at += HEADER;
    at[0] = (uint8_t)kind;
    at[1] = flag;
    put_number(at + 8, 8, number);
    put_number(at + 16, 8, link->arrived);
    if (front_size)
        memcpy(at + INNER, front, front_size);
    if (size)
        memcpy(at + INNER + front_size, body, size);
    frame->number = number;
    return frame;
}

/* A DEALER's end is reported by its monitor; a ROUTER says here that a connection is over. */
static void send_on(struct link *link, const struct way *way, const struct piece *frame)
{
    if (!way->socket)
        return;
    if (way->route_size && zmq_send(way->socket, way->route, way->route_size, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
        if (way->socket == link->way.socket && way->route_size == link->way.route_size
            && memcmp(way->route, link->way.route, way->route_size) == 0)
            link->way.socket = NULL;
        return;
    }
    zmq_send(way->socket, frame->bytes, frame->size, ZMQ_DONTWAIT);
}

void put_with(struct link *link, const struct way *way, char kind, uint64_t number, bool flag, const char *body)
{
    if (!way->socket)
        return;
    struct way there = *way; /* `way` may be the link's own, which ends meanwhile */
    struct piece *frame = frame_of(link, kind, number, flag, 0, NULL, 0, body, strlen(body));
    send_on(link, &there, frame);
    free(frame);
}

void put(struct link *link, char kind, uint64_t number, bool flag)
{
    put_with(link, &link->way, kind, number, flag, "");
}

static void send_numbered(struct link *link, struct piece *frame)
{
    append(&link->unacked, frame);
    if (!link->is_held) {
        struct way there = link->way;
        send_on(link, &there, frame);
    }
}

void send_missing(struct link *link)
{
    struct way there = link->way;
    for (struct piece *frame = link->unacked.first; frame && link->way.socket; frame = frame->next)
        send_on(link, &there, frame);
}

void use_way(struct link *link, const struct way *way, bool broke)
{
    link->way = *way;
    bool again = broke && link->has_begun;
    if (link->has_begun) {
        link->question++;
        link->is_held = link->unacked.first != NULL;
    }
    link->has_begun = true;
    put_with(link, &link->way, 'H', link->question, again, link->address);
    if (!link->is_held)
        send_missing(link);
}

bool may_send(const struct link *link, size_t size)
{
    uint64_t waiting = link->sent - link->taken;
    return waiting == 0 || waiting + size + OVERHEAD <= BUFFERING;
}

void send_packet(struct link *link, const struct piece *packet)
{
    link->sent += packet->size + OVERHEAD;
    if (packet->size <= LARGEST_BODY) {
        send_numbered(link, frame_of(link, 'D', ++link->number, false, 0, NULL, 0, packet->bytes, packet->size));
        return;
    }
    uint8_t length[LENGTH];
    put_number(length, LENGTH, packet->size);
    for (size_t done = 0; done < packet->size;) {
        size_t front = done ? 0 : LENGTH, rest = packet->size - done;
        size_t size = rest < LARGEST_BODY - front ? rest : LARGEST_BODY - front;
        send_numbered(link, frame_of(link, done ? 'P' : 'F', ++link->number, false, rest - size, length, front,
                                     packet->bytes + done, size));
        done += size;
    }
}
