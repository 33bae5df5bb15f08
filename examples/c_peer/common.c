/* Numbers, queues, time, and a way to give up. */

#define _POSIX_C_SOURCE 200809L
#include "common.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("c_peer: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(1);
}

void *resized(void *memory, size_t size)
{
    void *made = realloc(memory, size ? size : 1);
    if (!made)
        fail("there is no memory for %zu bytes", size);
    return made;
}

char *printed(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (size < 0)
        fail("a text cannot be printed");
    char *text = resized(NULL, (size_t)size + 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)size + 1, format, arguments);
    va_end(arguments);
    return text;
}

double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

uint64_t get_number(const uint8_t *at, size_t size)
{
    uint64_t value = 0;
    while (size)
        value = value << 8 | at[--size];
    return value;
}

void put_number(uint8_t *at, size_t size, uint64_t value)
{
    for (size_t place = 0; place < size; place++, value >>= 8)
        at[place] = (uint8_t)value;
}

bool from_hex(const char *digits, uint8_t *bytes, size_t size)
{
    static const char all[] = "0123456789abcdef";
    if (strlen(digits) != 2 * size)
        return false;
    for (size_t place = 0; place < 2 * size; place++) {
        const char *digit = strchr(all, digits[place]);
        if (!digit)
            return false;
        uint8_t value = (uint8_t)(digit - all);
        bytes[place / 2] = place % 2 ? (uint8_t)(bytes[place / 2] << 4 | value) : value;
    }
    return true;
}

struct piece *new_piece(size_t size)
{
    struct piece *piece = resized(NULL, sizeof *piece + size);
    piece->next = NULL;
    piece->number = 0;
    piece->size = size;
    return piece;
}

void append(struct queue *queue, struct piece *piece)
{
    piece->next = NULL;
    if (queue->first)
        queue->last->next = piece;
    else
        queue->first = piece;
    queue->last = piece;
}

struct piece *take_first(struct queue *queue)
{
    struct piece *first = queue->first;
    if (first)
        queue->first = first->next;
    return first;
}

void clear(struct queue *queue)
{
    struct piece *piece;
    while ((piece = take_first(queue)))
        free(piece);
}
