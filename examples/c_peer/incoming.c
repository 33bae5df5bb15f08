/* What comes from a member. Every number in a frame is checked before it is used. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"
#include "packet.h"

static const uint64_t LARGEST_PACKET = 1 << 30; /* a larger one is refused */

void give_up(struct link *link, const char *why)
{
    put_with(link, &link->way, 'L', 0, false, why);
    link->lost = why;
    fprintf(stderr, "c_peer: what came from %s made no sense: %s\n", link->name, why);
}

static void report(struct link *link)
{
    put(link, 'A', link->received[0], false);
    put(link, 'A', link->received[1], true);
}

static void receive_cost(struct link *link, bool has_context, uint64_t cost)
{
    link->received[has_context] += cost;
    put(link, 'A', link->received[has_context], has_context);
}

struct piece *next_message(struct link *link)
{
    struct piece *message = take_first(&link->messages);
    if (message) {
        link->waiting -= message->size + OVERHEAD;
        receive_cost(link, false, message->size + OVERHEAD);
    }
    return message;
}

static void take_message(struct link *link, struct piece *message)
{
    struct packet packet;
    const char *wrong = check_packet(message->bytes, message->size, &packet);
    uint64_t cost = message->size + OVERHEAD;
    if (!wrong && packet.context == 0) {
        link->waiting += cost;
        if (link->waiting > cost && link->waiting > 2 * (uint64_t)BUFFERING)
            wrong = "it sends more than it may";
        append(&link->messages, message);
    } else {
        free(message);
        if (!wrong)
            receive_cost(link, true, cost);
    }
    if (wrong)
        give_up(link, wrong);
}

/* A piece of a large packet. Memory grows with what has come, whatever length was promised. */
static void take_piece(struct link *link, const uint8_t *body, size_t size)
{
    struct piece *assembly = link->assembly;
    uint64_t total = assembly->number;
    if (size > total - link->filled) {
        give_up(link, "a piece is too long");
        return;
    }
    if (link->filled + size > assembly->size) {
        uint64_t room = 2 * (link->filled + size) < total ? 2 * (link->filled + size) : total;
        assembly = link->assembly = resized(assembly, sizeof *assembly + room);
        assembly->size = room;
    }
    memcpy(assembly->bytes + link->filled, body, size);
    link->filled += size;
    if (link->filled == total) {
        link->assembly = NULL;
        assembly->size = total;
        take_message(link, assembly);
    }
}

static void take_numbered(struct link *link, char kind, uint64_t number, const uint8_t *body, size_t size)
{
    if (kind == 'D') {
        struct piece *message = new_piece(size);
        memcpy(message->bytes, body, size);
        take_message(link, message);
    } else if (kind == 'P') {
        if (link->assembly) /* else its beginning was refused */
            take_piece(link, body, size);
    } else {
        free(link->assembly);
        link->assembly = NULL;
        if (kind == 'X')
            return;
        uint64_t total = size < LENGTH ? 0 : get_number(body, LENGTH);
        if (total < PACKET_HEADER) {
            give_up(link, "a length is missing, or too small");
        } else if (total > LARGEST_PACKET) {
            put(link, 'N', number, false);
        } else {
            link->assembly = new_piece(0);
            link->assembly->number = total;
            link->filled = 0;
            take_piece(link, body + LENGTH, size - LENGTH);
        }
    }
}

bool take_frame(struct link *link, const struct way *way, const uint8_t *frame, size_t size)
{
    if (link->lost)
        return true;
    if (size < HEADER || frame[4] != 'S') {
        give_up(link, "it is no frame");
        return true;
    }
    if (frame[7] != VERSION) {
        put_with(link, way, 'L', 0, false, "another version");
        fprintf(stderr, "c_peer: %s speaks version %d of the wire format, and this process version %d\n", link->name,
                frame[7], VERSION);
        return false;
    }
    if (size < HEADER + INNER || size > LARGEST_FRAME || get_number(frame, 4) != size - HEADER || frame[20] != 1
        || memcmp(frame + 24, link->peer, 16) != 0 || memcmp(frame + 40, link->own, 16) != 0) {
        give_up(link, "a frame's header is wrong, or it is of another site");
        return true;
    }
    const uint8_t *text = frame + HEADER, *body = text + INNER;
    char kind = (char)text[0];
    bool flag = text[1];
    uint64_t number = get_number(text + 8, 8), arrived = get_number(text + 16, 8);
    while (link->unacked.first && link->unacked.first->number <= arrived)
        free(take_first(&link->unacked));
    if (is_numbered(kind)) {
        if (number == link->arrived + 1) {
            link->arrived = number;
            take_numbered(link, kind, number, body, size - HEADER - INNER);
        }
        bool is_missing = number > link->arrived;
        put(link, 'R', is_missing ? link->their_question : 0, is_missing);
    } else if (kind == 'H') {
        if (number > link->their_question)
            link->their_question = number;
        put_with(link, way, 'W', number, false, "");
        report(link);
    } else if (kind == 'W' && number >= link->question && link->is_held) {
        link->is_held = false;
        send_missing(link);
    } else if (kind == 'R' && flag && number >= link->question && link->way.socket) {
        struct way there = link->way;
        use_way(link, &there, false);
    } else if (kind == 'A' && !flag && number > link->taken) {
        link->taken = number < link->sent ? number : link->sent;
    } else if (kind == 'Q') {
        report(link);
    } else if (kind == 'B' || kind == 'L') {
        link->lost = kind == 'B' ? "it has left" : "it gave this process up";
    }
    return true;
}
