/* A client of the directory server: JSON over a DEALER, with CURVE. */

#ifndef DIRECTORY_H
#define DIRECTORY_H

#include "common.h"

struct member {
    char *uid, *name, *address, *public_half, *site;
    bool is_dead;
};

struct directory {
    void *context, *socket;
    char *url, *server;                      /* the server's address and its key, in Z85 */
    char public_half[41], secret_half[41];   /* this process's own keys, in Z85 */
    char public_digits[65], uid[33];
    unsigned number;
    struct member *members;
    size_t count;
};

/* Say hello to the server at `url`, which proves with `key` that this process belongs to `world`. */
void open_directory(struct directory *directory, void *context, const char *world, const char *url, const char *key);

/* Join; `address` is where others reach this process. */
void join(struct directory *directory, const char *name, const char *site, const char *address);

/* Read what has come, and print who is gone. */
void read_news(struct directory *directory);

void leave(struct directory *directory);

/* The living member with this uid, or this public half (in hexadecimal digits); NULL if there is none. */
const struct member *find_member(const struct directory *directory, const char *uid_or_public_half);

/* Let a connecting socket show this process's keys, and talk to the owner of the key `server` only. */
void show_keys(void *socket, const char *public_half, const char *secret_half, const char *server);

void set_option(void *socket, int option, int value);

#endif
