/* What all parts need: numbers in little-endian order, queues of bytes, time, and a way to give up. */

#ifndef COMMON_H
#define COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Print a sentence to stderr, and exit with 1. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As realloc; without memory the program ends. */
void *resized(void *memory, size_t size);

/* What snprintf would write, in memory of its own. */
char *printed(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Seconds of a clock that only goes forward. */
double now(void);

uint64_t get_number(const uint8_t *at, size_t size);
void put_number(uint8_t *at, size_t size, uint64_t value);

/* Exactly 2 * size hexadecimal digits as bytes; false if there is anything else. */
bool from_hex(const char *digits, uint8_t *bytes, size_t size);

/* Bytes that wait in a queue. */
struct piece {
    struct piece *next;
    uint64_t number; /* of the frame, if it is one */
    size_t size;
    uint8_t bytes[];
};

struct queue {
    struct piece *first, *last;
};

struct piece *new_piece(size_t size);
void append(struct queue *queue, struct piece *piece);
struct piece *take_first(struct queue *queue); /* NULL if it is empty */
void clear(struct queue *queue);

#endif
