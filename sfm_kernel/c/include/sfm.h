/* sfm.h: messages between processes in C, C++ and Python.
 *
 * A world is a named group of processes of one machine. Each has a rank (0, 1, 2 ...) or a name,
 * and an inbox. A message has attributes: integers, doubles, text, bytes, arrays of numbers. A
 * receiver selects messages by a template: it takes the first message in its inbox that has the
 * template's attributes and values; the others stay. Python processes (`sfm_kernel.join`) share
 * these worlds.
 *
 * This program greets itself; instead of "me" it can name any other process of the world:
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
 * Every function that returns an int returns SFM_OK or one of the codes below, unless its comment
 * says otherwise. No function ends the process, and a function that fails changes none of its
 * arguments; NULL for a required argument is SFM_BAD_ARGUMENT. sfm_error_text() says what happened
 * and what to do next.
 *
 * Threads: many threads may use an endpoint at a time; many may use a packet while none changes it;
 * one at a time may use a message. In a forked child its parent's endpoints are closed, but the
 * child may join by itself. Signals: a waiting call continues after a handler; a handler may call
 * sfm_interrupt. An MPI program may use sfm.h and mpi.h together: their messages are separate.
 */
#ifndef SFM_H
#define SFM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A process's endpoint in a world. */
typedef struct sfm_endpoint sfm_endpoint;
/* The attributes of a message to send, or of a template. */
typedef struct sfm_packet sfm_packet;
/* A received message. */
typedef struct sfm_message sfm_message;

enum sfm_code {
    SFM_OK = 0,
    SFM_WOULD_BLOCK = 1,     /* there is no matching message */
    SFM_TIMED_OUT = 2,       /* no matching message came in time */
    SFM_PEER_LOST = 3,       /* a process that the call needs has died or left */
    SFM_UNKNOWN_NAME = 4,    /* no process has this name or rank */
    SFM_CLOSED = 5,          /* the endpoint has left, or belongs to the parent process */
    SFM_DEADLOCK = 6,        /* an observer has proved that nothing can end the call */
    SFM_INTERRUPTED = 7,     /* sfm_interrupt */
    SFM_NO_ATTRIBUTE = 8,    /* the message has no attribute of this name */
    SFM_WRONG_TYPE = 9,      /* the attribute has another type */
    SFM_NEEDS_PYTHON = 10,   /* the value is a Python object */
    SFM_BAD_ARGUMENT = 11,
    SFM_TOO_LARGE = 12,      /* the receiver has no memory for the message */
    SFM_NO_ROOM = 13,        /* shared memory is full */
    SFM_NO_MEMORY = 14,
    SFM_MESSAGES_LOST = 15,  /* the receiver could not read what was sent to it */
    SFM_DAMAGED = 16,        /* a received message is invalid */
    SFM_BAD_NAME = 17,       /* not a valid name of a world or process, or rank */
    SFM_NAME_IN_USE = 18,
    SFM_WORLD_FULL = 19,
    SFM_WORLD_GONE = 20,
    SFM_WORLD_ACCESS = 21,   /* it belongs to another user, or others can write to it */
    SFM_WORLD_ERROR = 22,    /* any other error of a world */
    SFM_SYSTEM = 23,         /* the system has refused something */
    SFM_INTERNAL = 24        /* a mistake in this library: please report it */
};

/* The error of this thread's latest failed call: what happened, to which process, and what to do
 * next. The text is valid until another call of this thread fails. Never NULL. */
const char *sfm_error_text(void);


/* ---- Joining -------------------------------------------------------------------------------- */

enum {
    SFM_ANY_RANK = -1, /* the lowest free rank, or that of the dead process whose name it takes */
    SFM_GUEST = -2     /* no rank: a process that observes and exchanges messages */
};

/* Join a world, which is made if it does not exist. Leave it with sfm_leave; the end of the program
 * leaves it, too.
 *
 * world: its name (letters, digits, '.', '_', '-'). NULL: the environment of a launcher decides:
 *        SFM_WORLD, SFM_NAME, SFM_RANK, SFM_SIZE, and SFM_NAMES, names by rank ("A,B"), or under
 *        `python -m sfm_kernel.mpi` SFM_MPI_WORLD and so on; the arguments given here have
 *        precedence.
 * name:  the name of this process; its rank if NULL.
 * rank:  0 or more, SFM_ANY_RANK or SFM_GUEST.
 * The process's site is SFM_SITE, or the machine's site.
 *
 * SFM_BAD_NAME, SFM_NAME_IN_USE, SFM_WORLD_FULL, SFM_WORLD_GONE, SFM_WORLD_ACCESS, SFM_WORLD_ERROR,
 * SFM_NO_ROOM. */
int sfm_join(const char *world, const char *name, int rank, sfm_endpoint **endpoint);

/* Leave the world. Waiting calls of other threads end with SFM_CLOSED, and so do later calls; sent
 * messages are still delivered, and received ones stay valid. Harmless when repeated, and with
 * NULL. */
void sfm_leave(sfm_endpoint *endpoint);

/* This process's rank; negative if it has none. */
int sfm_rank(const sfm_endpoint *endpoint);

/* The number of ranked processes in the world: the launcher's number, or those alive now without a
 * launcher. Negative if it is unknown. */
int sfm_size(const sfm_endpoint *endpoint);

/* The address of this process: its name, or its rank in digits. NULL without an endpoint. Valid
 * until the end of the program. */
const char *sfm_name(const sfm_endpoint *endpoint);

/* Wait until a process of this name (or rank, in digits) has joined and is alive.
 * seconds: the time limit, or SFM_FOREVER. SFM_TIMED_OUT. */
int sfm_wait_for(sfm_endpoint *endpoint, const char *name, double seconds);

/* Set how many bytes of unreceived messages a destination may have before a send to it waits. With
 * 0 each send waits until its message is received, which shows what buffering hides. Default:
 * 64 MiB. */
int sfm_set_buffering(sfm_endpoint *endpoint, size_t bytes);

/* End the call that waits now, or the next one that would wait, with SFM_INTERRUPTED. No message is
 * lost. The only function that a signal handler may call. */
int sfm_interrupt(sfm_endpoint *endpoint);


/* ---- Packets: messages to send, and templates ----------------------------------------------- */

/* Types of attributes. */
enum sfm_type {
    SFM_ABSENT = 0, /* there is no attribute of this name */
    SFM_INT = 1,    /* int64_t; also Python's bool */
    SFM_DOUBLE = 2,
    SFM_TEXT = 3, /* UTF-8 */
    SFM_BYTES = 4,
    SFM_ARRAY = 5,  /* numbers; NumPy's arrays */
    SFM_NONE = 6,   /* Python's None */
    SFM_OBJECT = 7, /* any other Python object, which only Python can open */
    SFM_ANY = 8     /* in templates: any type */
};

/* Elements of arrays: NumPy's letter for the kind, times 256, plus the bytes of one element. */
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

/* A new, empty packet, which the caller frees; NULL if there is no memory. It may be sent many
 * times. */
sfm_packet *sfm_packet_new(void);

/* Remove all attributes. Harmless with NULL. */
void sfm_packet_clear(sfm_packet *packet);

/* Harmless with NULL. */
void sfm_packet_free(sfm_packet *packet);

/* Set an attribute, or replace its value. Text and bytes are copied.
 *
 * In a template the message's attribute must equal this value. Numbers are equal as in Python: 1
 * equals 1.0. The attribute "src" is the sender: a rank (sfm_set_int), or a name or a rank in
 * digits (sfm_set_text). A packet to send has neither "src" nor "dest": sending adds both.
 *
 * SFM_BAD_ARGUMENT: an empty name, or text that is not UTF-8. */
int sfm_set_int(sfm_packet *packet, const char *name, int64_t value);
int sfm_set_double(sfm_packet *packet, const char *name, double value);
int sfm_set_text(sfm_packet *packet, const char *name, const char *value);
int sfm_set_bytes(sfm_packet *packet, const char *name, const void *bytes, size_t length);

/* The same for an array of numbers in which the last index runs fastest; a NumPy array in Python.
 * Only sending copies the numbers: until then they must stay at this address.
 *
 * element: an enum sfm_element. dimensions: 0 (one number) to SFM_DIMENSIONS, with as many extents
 * in shape. A template cannot contain arrays. */
int sfm_set_array(sfm_packet *packet, const char *name, int element, const void *numbers,
                  int dimensions, const size_t *shape);

/* In a template: the attribute must exist, with any value of a type (an enum sfm_type). */
int sfm_set_any(sfm_packet *packet, const char *name, int type);


/* ---- Sending -------------------------------------------------------------------------------- */

/* Send to a rank; sfm_send_to: to a name, or a rank in digits. The packet may be changed at once
 * afterwards. Messages from one process to another keep their order.
 *
 * Blocks: while the destination has more unreceived bytes than sfm_set_buffering allows.
 * SFM_UNKNOWN_NAME, SFM_PEER_LOST (within 2 s of its death), SFM_TOO_LARGE, SFM_NO_ROOM,
 * SFM_DEADLOCK, SFM_INTERRUPTED, SFM_CLOSED: nothing was sent. With buffering 0, SFM_PEER_LOST may
 * also mean that the message was not received. */
int sfm_send(sfm_endpoint *endpoint, int rank, const sfm_packet *packet);
int sfm_send_to(sfm_endpoint *endpoint, const char *name, const sfm_packet *packet);


/* ---- Receiving ------------------------------------------------------------------------------ */

#define SFM_FOREVER (-1.0)
#define SFM_NOW 0.0

/* Receive the first message, in order of arrival, that matches a template; any message if the
 * template is NULL. The caller releases *message.
 *
 * seconds: the time limit; SFM_FOREVER; SFM_NOW: do not wait.
 * SFM_WOULD_BLOCK (SFM_NOW only), SFM_TIMED_OUT, SFM_PEER_LOST (the process that the template names
 * has died or left, within 2 s; its messages are received before that), SFM_DEADLOCK,
 * SFM_INTERRUPTED, SFM_DAMAGED, SFM_CLOSED: no message is taken. */
int sfm_recv(sfm_endpoint *endpoint, const sfm_packet *wanted, double seconds,
             sfm_message **message);

/* Set *found to 1 if there is a matching message, otherwise to 0. The message is not taken. */
int sfm_peek(sfm_endpoint *endpoint, const sfm_packet *wanted, int *found);


/* ---- Messages ------------------------------------------------------------------------------- */

#define SFM_DIMENSIONS 32

/* An array in a message. */
typedef struct sfm_array {
    int element;                  /* an enum sfm_element */
    int dimensions;               /* 0: one number */
    size_t shape[SFM_DIMENSIONS]; /* as many extents */
    size_t count;                 /* the total of numbers */
    size_t size;                  /* bytes of one number */
    int first_fastest;            /* 1: the first index runs fastest (Fortran), 0: the last (C) */
    void *data;                   /* aligned; may be written to */
} sfm_array;

/* The value of an attribute. Texts, bytes and arrays are in the message's memory: they are valid,
 * and the receiver may change them, until it is released.
 *
 * sfm_get_double accepts integers, too; sfm_get_int does not accept doubles. Texts end with a zero;
 * length (bytes without the zero) may be NULL.
 *
 * SFM_NO_ATTRIBUTE, SFM_WRONG_TYPE; SFM_NEEDS_PYTHON: a list, a dict, or any other Python object.
 * The error text says what to send instead. */
int sfm_get_int(const sfm_message *message, const char *name, int64_t *value);
int sfm_get_double(const sfm_message *message, const char *name, double *value);
int sfm_get_text(const sfm_message *message, const char *name, const char **text, size_t *length);
int sfm_get_bytes(const sfm_message *message, const char *name, const void **bytes, size_t *length);
int sfm_get_array(const sfm_message *message, const char *name, sfm_array *array);

/* An enum sfm_type: SFM_ABSENT if the message has no such attribute. */
int sfm_type_of(const sfm_message *message, const char *name);

/* The name of the attribute with this index (0, 1 ...); NULL after the last. The first two are dest
 * and src. Valid as long as the message. */
const char *sfm_attribute(const sfm_message *message, int index);

/* The sender: a name, or a rank in digits, as for sfm_send_to. Valid as long as the message; NULL
 * without a message. */
const char *sfm_src(const sfm_message *message);

/* Free the message, and all values obtained from it. Harmless with NULL. */
void sfm_release(sfm_message *message);

#ifdef __cplusplus
}
#endif

#endif
