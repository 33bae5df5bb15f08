/* The first question is asked with keys that are derived from the world's, which proves that this
   process knows it; the rest with its own keys, by which the server and the members know it. */

#define _POSIX_C_SOURCE 200809L
#include "directory.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "json.h"

enum { PATIENCE = 10 }; /* seconds for an answer */

void set_option(void *socket, int option, int value)
{
    if (zmq_setsockopt(socket, option, &value, sizeof value) != 0)
        fail("ZeroMQ refuses option %d: %s", option, zmq_strerror(zmq_errno()));
}

void show_keys(void *socket, const char *public_half, const char *secret_half, const char *server)
{
    if (zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server, 41) != 0
        || zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, public_half, 41) != 0
        || zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret_half, 41) != 0)
        fail("ZeroMQ has no CURVE, or refuses these keys");
    set_option(socket, ZMQ_LINGER, 0);
}

static void connect_to_server(struct directory *directory, const char *public_half, const char *secret_half)
{
    directory->socket = zmq_socket(directory->context, ZMQ_DEALER);
    show_keys(directory->socket, public_half, secret_half, directory->server);
    if (zmq_connect(directory->socket, directory->url) != 0)
        fail("%s is no address of ZeroMQ", directory->url);
}

static void free_member(struct member *member)
{
    free(member->uid);
    free(member->name);
    free(member->address);
    free(member->public_half);
    free(member->site);
}

static void free_members(struct member *members, size_t count)
{
    for (size_t nth = 0; nth < count; nth++)
        free_member(&members[nth]);
    free(members);
}

static bool has_ended(struct json dead, const char *uid)
{
    struct json element;
    bool found = false;
    for (const char *cursor = NULL; !found && json_next(dead, &cursor, &element);) {
        char *text = json_text(element);
        found = text && strcmp(text, uid) == 0;
        free(text);
    }
    return found;
}

static void take_state(struct directory *directory, struct json answer)
{
    struct json members, dead = {NULL, NULL}, element;
    if (!json_find(answer, "members", &members))
        return;
    json_find(answer, "dead", &dead);
    struct member *old = directory->members;
    size_t old_count = directory->count;
    directory->members = NULL;
    directory->count = 0;
    for (const char *cursor = NULL; json_next(members, &cursor, &element);) {
        struct member member = {json_text_of(element, "uid"), json_text_of(element, "name"),
            json_text_of(element, "address"), json_text_of(element, "public"), json_text_of(element, "site"), false};
        size_t count = directory->count++;
        directory->members = resized(directory->members, (count + 1) * sizeof member);
        directory->members[count] = member;
        uint8_t uid[16], key[32];
        if (!member.uid || !member.name || !member.address || !member.public_half || !from_hex(member.uid, uid, 16)
            || !from_hex(member.public_half, key, 32)) {
            directory->count--; /* a member that nobody can reach over ZeroMQ */
            free_member(&member);
            continue;
        }
        directory->members[count].is_dead = has_ended(dead, member.uid);
    }
    for (size_t nth = 0; nth < old_count; nth++)
        if (!old[nth].is_dead && strcmp(old[nth].uid, directory->uid) != 0 && !find_member(directory, old[nth].uid))
            printf("%s is gone\n", old[nth].name);
    fflush(stdout);
    free_members(old, old_count);
}

/* The next message of the server's, whose text is in memory of its own; NULL if none is there. */
static char *receive(struct directory *directory, struct json *answer)
{
    zmq_msg_t message;
    zmq_msg_init(&message);
    char *text = NULL;
    if (zmq_msg_recv(&message, directory->socket, ZMQ_DONTWAIT) >= 0) {
        size_t size = zmq_msg_size(&message);
        text = resized(NULL, size);
        memcpy(text, zmq_msg_data(&message), size);
        if (!json_read(text, size, answer))
            fail("the directory server says what is no JSON");
        while (zmq_msg_more(&message)) /* what follows is not for this process */
            zmq_msg_recv(&message, directory->socket, 0);
        take_state(directory, *answer);
    }
    zmq_msg_close(&message);
    return text;
}

void read_news(struct directory *directory)
{
    struct json answer;
    char *text;
    while ((text = receive(directory, &answer)))
        free(text);
}

/* Ask, with details as they stand in the request; the answer is in memory of its own. */
static char *ask(struct directory *directory, const char *what, const char *details, struct json *answer)
{
    unsigned number = ++directory->number;
    char *request = printed("{\"number\": %u, \"ask\": \"%s\", %s}", number, what, details);
    zmq_send(directory->socket, request, strlen(request), 0);
    free(request);
    for (double until = now() + PATIENCE; now() < until;) {
        zmq_pollitem_t item = {directory->socket, 0, ZMQ_POLLIN, 0};
        zmq_poll(&item, 1, 100);
        char *text;
        while ((text = receive(directory, answer))) {
            char *repeated = json_text_of(*answer, "number");
            bool is_it = repeated && strtoul(repeated, NULL, 10) == number;
            free(repeated);
            struct json error;
            if (is_it && json_find(*answer, "error", &error))
                fail("the directory server refuses: %s", json_text_of(*answer, "message"));
            if (is_it)
                return text;
            free(text);
        }
    }
    fail("no directory server answers at %s, or not to this key", directory->url);
}

void open_directory(struct directory *directory, void *context, const char *world, const char *url, const char *key)
{
    uint8_t server[32], half[32], bytes[64], random[16];
    char secret[41], public[41];
    const char *slash = strrchr(url, '/');
    if (!slash || !from_hex(slash + 1, server, 32))
        fail("%s does not end with the public half of the directory server's keys", url);
    size_t size = strlen(key) / 2;
    if (size == 0 || size > sizeof bytes || !from_hex(key, bytes, size))
        fail("the world's key is not as many hexadecimal digits as it should be");
    *directory = (struct directory){.context = context, .url = printed("%.*s", (int)(slash - url), url)};
    directory->server = zmq_z85_encode(resized(NULL, 41), server, 32);
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, bytes, size);
    crypto_auth_hmacsha256_update(&state, (const uint8_t *)"sfm directory", 13);
    crypto_auth_hmacsha256_final(&state, half);
    zmq_z85_encode(secret, half, 32);
    if (zmq_curve_public(public, secret) != 0 || zmq_curve_keypair(directory->public_half, directory->secret_half) != 0)
        fail("this libzmq has no CURVE");
    zmq_z85_decode(half, directory->public_half);
    sodium_bin2hex(directory->public_digits, sizeof directory->public_digits, half, 32);
    randombytes_buf(random, sizeof random);
    sodium_bin2hex(directory->uid, sizeof directory->uid, random, sizeof random);
    connect_to_server(directory, public, secret);
    char *details = printed("\"public\": \"%s\"", directory->public_digits);
    struct json answer;
    char *text = ask(directory, "hello", details, &answer), *there = json_text_of(answer, "world");
    if (there && strcmp(there, world) != 0)
        fail("the directory server at %s is that of world %s, and not of %s", directory->url, there, world);
    free(there), free(text), free(details);
    zmq_close(directory->socket);
    connect_to_server(directory, directory->public_half, directory->secret_half);
}

/* Ask until the server has made sure that a process, which has just ended, is dead. */
static void insist(struct directory *directory, const char *what, const char *details)
{
    struct json answer, value;
    struct timespec pause = {0, 50000000};
    for (bool is_done = false; !is_done; nanosleep(&pause, NULL)) {
        char *text = ask(directory, what, details, &answer);
        is_done = !json_find(answer, "again", &value);
        free(text);
    }
}

void join(struct directory *directory, const char *name, const char *site, const char *address)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    char *quoted[] = {json_quoted(host), json_quoted(address), json_quoted(name), json_quoted(site)};
    char *details = printed("\"request\": {\"uid\": \"%s\", \"pid\": %ld, \"host\": %s, \"segment\": \"\", "
        "\"address\": %s, \"name\": %s, \"site\": %s, \"public\": \"%s\", \"info\": {\"plain\": true}}",
        directory->uid, (long)getpid(), quoted[0], quoted[1], quoted[2], quoted[3], directory->public_digits);
    insist(directory, "join", details);
    for (int nth = 0; nth < 4; nth++)
        free(quoted[nth]);
    free(details);
}

void leave(struct directory *directory)
{
    char *details = printed("\"uid\": \"%s\"", directory->uid);
    insist(directory, "leave", details);
    free(details);
    free_members(directory->members, directory->count);
    free(directory->url);
    free(directory->server);
}

const struct member *find_member(const struct directory *directory, const char *uid_or_public_half)
{
    for (size_t nth = 0; nth < directory->count; nth++) {
        const struct member *member = &directory->members[nth];
        if (!member->is_dead
            && (strcmp(member->uid, uid_or_public_half) == 0 || strcmp(member->public_half, uid_or_public_half) == 0))
            return member;
    }
    return NULL;
}
