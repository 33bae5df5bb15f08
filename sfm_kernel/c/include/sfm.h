/* sfm.h: messages between processes in C, C++ and Python.
 *
 * A world is a named group of processes of one machine. Each has a rank (0, 1, 2 ...) or a name, and
 * an inbox. A message has attributes: integers, doubles, text, bytes, arrays of numbers. Whoever
 * receives says what he wants by a template: the first message that came in with these attributes
 * and values is taken, the others stay. Python processes (`sfm_kernel.join`) are in the same worlds.
 *
 * This program greets itself; a name in place of "me" reaches any other process of the world:
 *
 *     #include <sfm.h>
 *     #include <stdio.h>
 *
 *     static int failed(const char *what)
 *     {
 *         fprintf(stderr, "%s: %s\n", what, sfm_error_text());
 *         return 1;
 *     }
 *
 *     int main(void)
 *     {
 *         sfm_endpoint *me;
 *         sfm_message *message;
 *         sfm_packet *packet = sfm_packet_new();
 *         const char *text;
 *
 *         if (sfm_join("example", "me", SFM_ANY_RANK, &me) != SFM_OK)
 *             return failed("join");
 *         sfm_set_text(packet, "tag", "greeting");
 *         sfm_set_text(packet, "text", "Hello");
 *         if (sfm_send_to(me, "me", packet) != SFM_OK)
 *             return failed("send");
 *
 *         sfm_packet_clear(packet);
 *         sfm_set_text(packet, "tag", "greeting");
 *         if (sfm_recv(me, packet, SFM_FOREVER, &message) != SFM_OK)
 *             return failed("recv");
 *         if (sfm_get_text(message, "text", &text, NULL) != SFM_OK)
 *             return failed("text");
 *         printf("%s from %s\n", text, sfm_src(message));
 *
 *         sfm_release(message);
 *         sfm_packet_free(packet);
 *         sfm_leave(me);
 *         return 0;
 *     }
 *
 * Build it with: cc prog.c $(sfm-config --cflags --libs) -o prog
 *
 * Every function that returns an int returns SFM_OK or one of the codes below, unless it says
 * otherwise. None ends the process, and none changes what it was given when it fails; NULL where a
 * thing is needed is SFM_BAD_ARGUMENT. sfm_error_text() says what happened and what to do next.
 *
 * Threads: an endpoint may be used by many at a time; a packet while nobody changes it; a message by
 * one at a time. In a forked child the endpoints of its parent are closed: it may join by itself.
 * Signals: a call that waits goes on when a handler has run; a handler may call sfm_interrupt.
 * In an MPI program use sfm.h and mpi.h side by side as you like: they do not see each other's messages.
 */
#ifndef SFM_H
#define SFM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One process's end of a world. */
typedef struct sfm_endpoint sfm_endpoint;
/* Attributes: of a message to be sent, or of a template. */
typedef struct sfm_packet sfm_packet;
/* A message that was received. */
typedef struct sfm_message sfm_message;

enum sfm_code {
    SFM_OK = 0,
    SFM_WOULD_BLOCK = 1,     /* no message that fits is there */
    SFM_TIMED_OUT = 2,       /* nor came one in time */
    SFM_PEER_LOST = 3,       /* who the call depends on has died or left */
    SFM_UNKNOWN_NAME = 4,    /* nobody has this name or rank */
    SFM_CLOSED = 5,          /* the endpoint has left, or is the parent's of this process */
    SFM_DEADLOCK = 6,        /* nothing can end the call: an observer has proved it */
    SFM_INTERRUPTED = 7,     /* sfm_interrupt */
    SFM_NO_ATTRIBUTE = 8,    /* the message has none of this name */
    SFM_WRONG_TYPE = 9,      /* it has another type */
    SFM_NEEDS_PYTHON = 10,   /* its value is an object of Python's */
    SFM_BAD_ARGUMENT = 11,
    SFM_TOO_LARGE = 12,      /* the receiver has no memory for the message */
    SFM_NO_ROOM = 13,        /* shared memory is full */
    SFM_NO_MEMORY = 14,
    SFM_MESSAGES_LOST = 15,  /* the receiver could not read what was sent to it */
    SFM_DAMAGED = 16,        /* what a sender has sent makes no sense */
    SFM_BAD_NAME = 17,       /* no name of a world or a process, or no rank */
    SFM_NAME_IN_USE = 18,
    SFM_WORLD_FULL = 19,
    SFM_WORLD_GONE = 20,
    SFM_WORLD_ACCESS = 21,   /* it is somebody else's, or open to others */
    SFM_WORLD_ERROR = 22,    /* anything else about a world */
    SFM_SYSTEM = 23,         /* the system has refused something */
    SFM_INTERNAL = 24        /* a fault of this library's: please report it */
};

/* What happened to the latest call of this thread that failed, to whom, and what to do next. The text
 * stays as it is until another call of this thread fails. Never NULL. */
const char *sfm_error_text(void);


/* ---- Joining -------------------------------------------------------------------------------- */

enum {
    SFM_ANY_RANK = -1, /* the lowest that is free, or that of the dead process whose name it takes */
    SFM_GUEST = -2     /* no rank: somebody who watches and talks */
};

/* Become a process of a world, which is made if it does not exist. *endpoint is to be left again;
 * the end of the program does it, too.
 *
 * world: its name (letters, digits, '.', '_', '-'). NULL: as the environment says, which a launcher
 *        has set: SFM_WORLD, SFM_NAME, SFM_RANK, SFM_SIZE, or under `python -m sfm_kernel.mpi`
 *        SFM_MPI_WORLD and so on; what is given here goes before it.
 * name:  what others call this process; its rank if NULL.
 * rank:  0 or more, SFM_ANY_RANK or SFM_GUEST.
 * Its site is what SFM_SITE says, or the machine's.
 *
 * SFM_BAD_NAME, SFM_NAME_IN_USE, SFM_WORLD_FULL, SFM_WORLD_GONE, SFM_WORLD_ACCESS, SFM_WORLD_ERROR,
 * SFM_NO_ROOM. */
int sfm_join(const char *world, const char *name, int rank, sfm_endpoint **endpoint);

/* Leave the world. Calls that wait in other threads end with SFM_CLOSED, as do later ones; what was
 * sent is still delivered, and messages that were received stay valid. Harmless when repeated, and
 * with NULL. */
void sfm_leave(sfm_endpoint *endpoint);

/* The own rank; negative without one. */
int sfm_rank(const sfm_endpoint *endpoint);

/* How many ranked processes the world has: as the launcher says, else those that live now. Negative
 * where that cannot be known. */
int sfm_size(const sfm_endpoint *endpoint);

/* What addresses this process: its name, or its rank in digits. NULL without an endpoint. Lives as
 * long as the program. */
const char *sfm_name(const sfm_endpoint *endpoint);

/* Return when a process of this name (or rank, in digits) has joined and lives.
 * seconds: SFM_FOREVER, or for how long. SFM_TIMED_OUT. */
int sfm_wait_for(sfm_endpoint *endpoint, const char *name, double seconds);

/* So many bytes of unreceived messages may be at one destination before a send there waits. With 0
 * each send waits until its message was received, which shows what buffering hides. 64 MiB at first. */
int sfm_set_buffering(sfm_endpoint *endpoint, size_t bytes);

/* End the call that waits now, or the next one that would, with SFM_INTERRUPTED. No message is lost.
 * The only function that a handler of a signal may call. */
int sfm_interrupt(sfm_endpoint *endpoint);


/* ---- Packets: what is sent, and templates --------------------------------------------------- */

/* What an attribute is. */
enum sfm_type {
    SFM_ABSENT = 0, /* there is none of this name */
    SFM_INT = 1,    /* int64_t; also Python's bool */
    SFM_DOUBLE = 2,
    SFM_TEXT = 3, /* UTF-8 */
    SFM_BYTES = 4,
    SFM_ARRAY = 5,  /* numbers; NumPy's arrays */
    SFM_NONE = 6,   /* Python's None */
    SFM_OBJECT = 7, /* any other object of Python's, which only Python can open */
    SFM_ANY = 8     /* in templates: whatever it is */
};

/* What an array consists of: NumPy's letter for its kind, times 256, and the bytes of one. */
enum sfm_element {
    SFM_BOOL8 = 'b' * 256 + 1,
    SFM_INT8 = 'i' * 256 + 1,
    SFM_INT16 = 'i' * 256 + 2,
    SFM_INT32 = 'i' * 256 + 4,
    SFM_INT64 = 'i' * 256 + 8,
    SFM_UINT8 = 'u' * 256 + 1,
    SFM_UINT16 = 'u' * 256 + 2,
    SFM_UINT32 = 'u' * 256 + 4,
    SFM_UINT64 = 'u' * 256 + 8,
    SFM_FLOAT16 = 'f' * 256 + 2,
    SFM_FLOAT32 = 'f' * 256 + 4, /* float */
    SFM_FLOAT64 = 'f' * 256 + 8, /* double */
    SFM_COMPLEX64 = 'c' * 256 + 8,
    SFM_COMPLEX128 = 'c' * 256 + 16
};

/* An empty packet, to be freed; NULL without memory. One packet may be sent many times. */
sfm_packet *sfm_packet_new(void);

/* Take all attributes out. Harmless with NULL. */
void sfm_packet_clear(sfm_packet *packet);

/* Harmless with NULL. */
void sfm_packet_free(sfm_packet *packet);

/* Give an attribute a value; it replaces the one that it had. Text and bytes are copied.
 *
 * In a template it is what the message's attribute must be equal to. Numbers are equal as in Python:
 * 1 and 1.0 are. The attribute "src" is who has sent it: a rank (sfm_set_int), a name or a rank in
 * digits (sfm_set_text). What is sent has no such attribute, nor "dest": sending adds both.
 *
 * SFM_BAD_ARGUMENT: no name, or text that is not UTF-8. */
int sfm_set_int(sfm_packet *packet, const char *name, int64_t value);
int sfm_set_double(sfm_packet *packet, const char *name, double value);
int sfm_set_text(sfm_packet *packet, const char *name, const char *value);
int sfm_set_bytes(sfm_packet *packet, const char *name, const void *bytes, size_t length);

/* The same of an array of numbers, the last index running fastest; a NumPy array in Python.
 * The numbers are copied by sending, and not before: they have to stay where they are until then.
 *
 * element: an enum sfm_element. dimensions: 0 (one number) to SFM_DIMENSIONS, with as many extents
 * in shape. In templates there are no arrays. */
int sfm_set_array(sfm_packet *packet, const char *name, int element, const void *numbers,
                  int dimensions, const size_t *shape);

/* In a template: the attribute must be there, with whatever value of a type (an enum sfm_type). */
int sfm_set_any(sfm_packet *packet, const char *name, int type);


/* ---- Sending -------------------------------------------------------------------------------- */

/* Send to a rank; sfm_send_to: to a name, or a rank in digits. The packet may be changed at once
 * afterwards. Messages from one process to another keep their order.
 *
 * Blocks: while more is unreceived there than sfm_set_buffering says.
 * SFM_UNKNOWN_NAME, SFM_PEER_LOST (within 2 s of its death), SFM_TOO_LARGE, SFM_NO_ROOM, SFM_DEADLOCK,
 * SFM_INTERRUPTED, SFM_CLOSED: nothing was sent. With buffering 0, SFM_PEER_LOST may also mean that
 * it was not received. */
int sfm_send(sfm_endpoint *endpoint, int rank, const sfm_packet *packet);
int sfm_send_to(sfm_endpoint *endpoint, const char *name, const sfm_packet *packet);


/* ---- Receiving ------------------------------------------------------------------------------ */

#define SFM_FOREVER (-1.0)
#define SFM_NOW 0.0

/* Take the first message that fits a template, in the order in which they came in; any message if
 * the template is NULL. *message is to be released.
 *
 * seconds: for how long to wait; SFM_FOREVER; SFM_NOW: not at all.
 * SFM_WOULD_BLOCK (SFM_NOW only), SFM_TIMED_OUT, SFM_PEER_LOST (the process that the template names
 * has died or left, within 2 s; what it had sent is received before), SFM_DEADLOCK, SFM_INTERRUPTED,
 * SFM_DAMAGED, SFM_CLOSED: all messages are still there. */
int sfm_recv(sfm_endpoint *endpoint, const sfm_packet *wanted, double seconds,
             sfm_message **message);

/* Whether there is a message that fits: *found becomes 1 or 0. It stays where it is. */
int sfm_peek(sfm_endpoint *endpoint, const sfm_packet *wanted, int *found);


/* ---- Messages ------------------------------------------------------------------------------- */

#define SFM_DIMENSIONS 32

/* An array in a message. */
typedef struct sfm_array {
    int element;                  /* an enum sfm_element */
    int dimensions;               /* 0: one number */
    size_t shape[SFM_DIMENSIONS]; /* as many extents */
    size_t count;                 /* numbers in all */
    size_t size;                  /* bytes of one */
    int first_fastest;            /* 1: the first index runs fastest (Fortran), 0: the last (C) */
    void *data;                   /* aligned; may be written to */
} sfm_array;

/* The value of an attribute. Texts, bytes and arrays are the message's own memory: they are valid,
 * and nobody else's, until it is released.
 *
 * A double may also be got from an integer, never the other way round. Texts end with a zero;
 * length (bytes without it) may be NULL.
 *
 * SFM_NO_ATTRIBUTE, SFM_WRONG_TYPE; SFM_NEEDS_PYTHON: a list, a dict, any object that is none of the
 * above. The text says what to send instead. */
int sfm_get_int(const sfm_message *message, const char *name, int64_t *value);
int sfm_get_double(const sfm_message *message, const char *name, double *value);
int sfm_get_text(const sfm_message *message, const char *name, const char **text, size_t *length);
int sfm_get_bytes(const sfm_message *message, const char *name, const void **bytes, size_t *length);
int sfm_get_array(const sfm_message *message, const char *name, sfm_array *array);

/* An enum sfm_type: SFM_ABSENT where the message has no such attribute. */
int sfm_type_of(const sfm_message *message, const char *name);

/* The name of the attribute number index (0, 1 ...); NULL behind the last. The first are dest and
 * src. Lives as long as the message. */
const char *sfm_attribute(const sfm_message *message, int index);

/* Who has sent it: a name, or a rank in digits, as sfm_send_to takes it. Lives as long as the
 * message; NULL without one. */
const char *sfm_src(const sfm_message *message);

/* Give the message back, and all that was got from it. Harmless with NULL. */
void sfm_release(sfm_message *message);

#ifdef __cplusplus
}
#endif

#endif
