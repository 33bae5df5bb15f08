/* Packets are checked before anything in them is used: every number in them comes from the network. */

#include "packet.h"

#include <stdlib.h>
#include <string.h>

enum { ENTRY = 8, DESCRIPTOR = 16, ALIGNMENT = 64, MOST_DIMENSIONS = 32 };
enum { NONE, NO, YES, INTEGER, LARGE_INTEGER, FLOAT, TEXT, BYTES, LONG_TEXT = 9, LONG_BYTES, ARRAY = 12 };

struct entry {
    const uint8_t *begin, *name, *value;
    size_t name_size, value_size, size;
    uint8_t kind;
};

static bool read_entry(const uint8_t *at, const uint8_t *end, struct entry *entry)
{
    size_t rest = (size_t)(end - at);
    if (rest < ENTRY)
        return false;
    entry->begin = at;
    entry->name = at + ENTRY;
    entry->name_size = get_number(at, 2);
    entry->kind = at[2];
    entry->value_size = get_number(at + 4, 4);
    rest -= ENTRY;
    if (entry->name_size > rest || entry->value_size > rest - entry->name_size)
        return false;
    entry->value = entry->name + entry->name_size;
    entry->size = ENTRY + entry->name_size + entry->value_size;
    return true;
}

static bool is_text(const uint8_t *at, size_t size)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    for (const uint8_t *end = at + size; at < end;) {
        uint32_t code = *at++;
        int more = code < 0x80 ? 0 : code >= 0xF0 ? 3 : code >= 0xE0 ? 2 : 1;
        if (more && (code < 0xC0 || code > 0xF7 || end - at < more))
            return false;
        code &= more ? 0x3Fu >> more : 0x7F;
        for (int place = 0; place < more; place++, at++) {
            if ((*at & 0xC0) != 0x80)
                return false;
            code = code << 6 | (*at & 0x3F);
        }
        if (code < least[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            return false;
    }
    return true;
}

static const uint8_t *descriptor(const struct packet *packet, uint64_t number)
{
    return packet->bytes + PACKET_HEADER + packet->table + DESCRIPTOR * number;
}

/* Whether it is an array, of as many bytes as its buffer has. */
static bool is_array(const struct packet *packet, const struct entry *entry)
{
    const uint8_t *value = entry->value;
    if (entry->value_size < 8 || get_number(value, 4) >= packet->buffers)
        return false;
    uint8_t kind = value[4], item = value[5], order = value[6], dimensions = value[7];
    bool is_power = item && !(item & (item - 1));
    bool is_number = kind == 'b' ? item == 1 : kind == 'i' || kind == 'u' ? is_power && item <= 8
        : kind == 'f' ? is_power && item >= 2 && item <= 8 : kind == 'c' && (item == 8 || item == 16);
    if (!is_number || (order != 'C' && order != 'F') || dimensions > MOST_DIMENSIONS
        || entry->value_size != 8 + 8 * (size_t)dimensions)
        return false;
    uint64_t bytes = item;
    for (int place = 0; place < dimensions; place++) {
        uint64_t extent = get_number(value + 8 + 8 * place, 8);
        if (extent && bytes > UINT64_MAX / extent)
            return false;
        bytes *= extent;
    }
    return bytes == get_number(descriptor(packet, get_number(value, 4)) + 8, 8);
}

static bool is_right(const struct packet *packet, const struct entry *entry)
{
    size_t size = entry->value_size;
    switch (entry->kind) {
    case NONE: case NO: case YES: return size == 0;
    case INTEGER: case FLOAT: return size == 8;
    case LARGE_INTEGER: return size > 0;
    case TEXT: return is_text(entry->value, size);
    case BYTES: return true;
    case LONG_TEXT: case LONG_BYTES: return size == 4 && get_number(entry->value, 4) < packet->buffers;
    case ARRAY: return is_array(packet, entry);
    default: return false; /* also a pickle: this member has said that it reads none */
    }
}

static int by_name(const void *left, const void *right)
{
    const struct entry *one = left, *other = right;
    size_t shorter = one->name_size < other->name_size ? one->name_size : other->name_size;
    int order = memcmp(one->name, other->name, shorter);
    return order ? order : (one->name_size > other->name_size) - (one->name_size < other->name_size);
}

static const char *check_table(const struct packet *packet)
{
    const uint8_t *at = packet->bytes + PACKET_HEADER, *end = at + packet->table;
    if (packet->count > packet->table / ENTRY)
        return "its table is shorter than its entries";
    struct entry *entries = resized(NULL, packet->count * sizeof *entries);
    const char *wrong = NULL;
    uint64_t used = 0;
    for (uint32_t nth = 0; nth < packet->count && !wrong; nth++) {
        struct entry *entry = &entries[nth];
        if (!read_entry(at, end, entry) || !is_text(entry->name, entry->name_size) || !is_right(packet, entry))
            wrong = "an attribute is damaged";
        else if (entry->kind >= LONG_TEXT && get_number(entry->value, 4) != used++)
            wrong = "a buffer does not belong to one value";
        else
            at += entry->size;
    }
    if (!wrong && at != end)
        wrong = "its table is longer than its entries";
    if (!wrong) {
        qsort(entries, packet->count, sizeof *entries, by_name);
        for (uint32_t nth = 1; nth < packet->count; nth++)
            if (by_name(&entries[nth - 1], &entries[nth]) == 0)
                wrong = "a name comes twice";
    }
    free(entries);
    return wrong;
}

const char *check_packet(const uint8_t *bytes, size_t size, struct packet *packet)
{
    if (size < PACKET_HEADER || memcmp(bytes, "SFP\xB5\x02", 5) != 0 || bytes[5] > 1)
        return "it is no packet";
    *packet = (struct packet){bytes, size, get_number(bytes + 24, 8), (uint32_t)get_number(bytes + 6, 2),
                              (uint32_t)get_number(bytes + 8, 4), (uint32_t)get_number(bytes + 12, 4)};
    uint64_t free_from = PACKET_HEADER + (uint64_t)packet->table + DESCRIPTOR * (uint64_t)packet->buffers;
    if (get_number(bytes + 16, 8) != size || free_from > size)
        return "its length is wrong";
    for (uint32_t nth = 0; nth < packet->buffers; nth++) {
        uint64_t offset = get_number(descriptor(packet, nth), 8), length = get_number(descriptor(packet, nth) + 8, 8);
        if (offset < free_from || offset > size || length > size - offset)
            return "a buffer lies outside, or in another one";
        free_from = offset + length;
    }
    if (bytes[5] == 1) { /* an envelope, of MPI's */
        if (packet->context == 0)
            return "its envelope is damaged";
        return NULL;
    }
    /* The library's own messages may hold pickles: they are thrown away unread. */
    return packet->context ? NULL : check_table(packet);
}

static bool find(const struct packet *packet, const char *name, struct entry *entry)
{
    const uint8_t *at = packet->bytes + PACKET_HEADER, *end = at + packet->table;
    for (; read_entry(at, end, entry); at += entry->size)
        if (entry->name_size == strlen(name) && memcmp(entry->name, name, entry->name_size) == 0)
            return true;
    return false;
}

bool has_attribute(const struct packet *packet, const char *name)
{
    struct entry entry;
    return find(packet, name, &entry);
}

static uint8_t *put_entry(uint8_t *at, const char *name, uint8_t kind, const void *value, size_t size)
{
    put_number(at, 2, strlen(name));
    at[2] = kind;
    put_number(at + 4, 4, size);
    memcpy(at + ENTRY, name, strlen(name));
    memcpy(at + ENTRY + strlen(name), value, size);
    return at + ENTRY + strlen(name) + size;
}

struct piece *echo_of(const struct packet *packet, const char *name)
{
    struct entry src, dest, entry;
    bool has_dest = find(packet, "dest", &dest);
    if (!find(packet, "src", &src) || src.kind >= LONG_TEXT || (has_dest && dest.kind >= LONG_TEXT))
        return NULL;
    size_t others = packet->table - src.size - (has_dest ? dest.size : 0);
    size_t table = others + 2 * ENTRY + 4 + src.value_size + 3 + strlen(name);
    uint64_t size = PACKET_HEADER + table + DESCRIPTOR * (uint64_t)packet->buffers;
    if (table > UINT32_MAX || (!has_dest && packet->count == UINT16_MAX))
        return NULL;
    for (uint32_t nth = 0; nth < packet->buffers; nth++)
        size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + get_number(descriptor(packet, nth) + 8, 8);
    struct piece *echo = new_piece(size);
    uint8_t *bytes = echo->bytes;
    memset(bytes, 0, size);
    memcpy(bytes, packet->bytes, PACKET_HEADER);
    put_number(bytes + 6, 2, packet->count + !has_dest);
    put_number(bytes + 8, 4, table);
    put_number(bytes + 16, 8, size);
    uint8_t *at = put_entry(bytes + PACKET_HEADER, "dest", src.kind, src.value, src.value_size);
    at = put_entry(at, "src", TEXT, name, strlen(name));
    const uint8_t *from = packet->bytes + PACKET_HEADER, *end = from + packet->table;
    for (; read_entry(from, end, &entry); from += entry.size) {
        if (entry.begin == src.begin || (has_dest && entry.begin == dest.begin))
            continue;
        memcpy(at, entry.begin, entry.size);
        at += entry.size;
    }
    uint64_t offset = PACKET_HEADER + table + DESCRIPTOR * (uint64_t)packet->buffers;
    for (uint32_t nth = 0; nth < packet->buffers; nth++, at += DESCRIPTOR) {
        const uint8_t *old = descriptor(packet, nth);
        uint64_t length = get_number(old + 8, 8);
        offset = (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        put_number(at, 8, offset);
        put_number(at + 8, 8, length);
        memcpy(bytes + offset, packet->bytes + get_number(old, 8), length);
        offset += length;
    }
    return echo;
}
