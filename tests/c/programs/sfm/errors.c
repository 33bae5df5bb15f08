/* errors WORLD: each thing that can be done wrongly, and its code; prints the texts. */
#include "check.h"
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static sfm_endpoint *self;

static void fails(int code, int expected, int line)
{
    if (code != expected) {
        fprintf(stderr, "line %d: %d instead of %d: %s\n", line, code, expected, sfm_error_text());
        exit(9);
    }
    printf("%d %s\n", code, sfm_error_text());
}

#define FAILS(call, expected) fails(call, expected, __LINE__)

static void interrupt(int number)
{
    (void)number;
    sfm_interrupt(self);
}

static void join(const char *world)
{
    sfm_endpoint *other;

    FAILS(sfm_join(world, NULL, 0, NULL), SFM_BAD_ARGUMENT);
    FAILS(sfm_join(NULL, NULL, 0, &other), SFM_BAD_ARGUMENT);
    FAILS(sfm_join("a/b", NULL, 0, &other), SFM_BAD_NAME);
    FAILS(sfm_join(world, "12", SFM_ANY_RANK, &other), SFM_BAD_NAME);
    FAILS(sfm_join(world, "", SFM_ANY_RANK, &other), SFM_BAD_NAME);
    FAILS(sfm_join(world, "\xff", SFM_ANY_RANK, &other), SFM_BAD_ARGUMENT);
    FAILS(sfm_join(world, NULL, -3, &other), SFM_BAD_NAME);
    DONE(sfm_join(world, "errors", SFM_ANY_RANK, &self));
    FAILS(sfm_join(world, "errors", SFM_ANY_RANK, &other), SFM_NAME_IN_USE);
    FAILS(sfm_join(world, NULL, sfm_rank(self), &other), SFM_NAME_IN_USE);
    DONE(sfm_join(world, NULL, SFM_GUEST, &other));
    CHECK(sfm_rank(other) == -1 && strcmp(sfm_name(other), "home") == 0);
    CHECK(sfm_size(self) == 1);
    sfm_leave(other);
    sfm_leave(other);
    FAILS(sfm_send(other, 0, NULL), SFM_CLOSED);
    CHECK(sfm_rank(NULL) == -1 && sfm_size(NULL) == -1 && sfm_name(NULL) == NULL);
    sfm_leave(NULL);
}

static void packets(void)
{
    const size_t endless[] = {SIZE_MAX, SIZE_MAX};
    sfm_packet *packet = sfm_packet_new();

    FAILS(sfm_set_int(NULL, "x", 1), SFM_BAD_ARGUMENT);
    FAILS(sfm_set_int(packet, NULL, 1), SFM_BAD_ARGUMENT);
    FAILS(sfm_set_int(packet, "", 1), SFM_BAD_ARGUMENT);
    FAILS(sfm_set_text(packet, "x", NULL), SFM_BAD_ARGUMENT);
    FAILS(sfm_set_text(packet, "x", "\xe4"), SFM_BAD_ARGUMENT);
    FAILS(sfm_set_bytes(packet, "x", NULL, 1), SFM_BAD_ARGUMENT);
    FAILS(sfm_set_array(packet, "x", 17, "", 0, NULL), SFM_BAD_ARGUMENT);
    FAILS(sfm_set_array(packet, "x", SFM_INT8, "", 33, endless), SFM_BAD_ARGUMENT);
    FAILS(sfm_set_array(packet, "x", SFM_INT8, "", 1, NULL), SFM_BAD_ARGUMENT);
    FAILS(sfm_set_array(packet, "x", SFM_INT8, "", 2, endless), SFM_BAD_ARGUMENT);
    FAILS(sfm_set_array(packet, "x", SFM_INT8, NULL, 0, NULL), SFM_BAD_ARGUMENT);
    FAILS(sfm_set_any(packet, "x", 0), SFM_BAD_ARGUMENT);
    FAILS(sfm_send_to(self, "nobody", packet), SFM_UNKNOWN_NAME);
    FAILS(sfm_send(self, 77, packet), SFM_UNKNOWN_NAME);
    FAILS(sfm_send(self, -1, packet), SFM_BAD_ARGUMENT);
    FAILS(sfm_send_to(self, "errors", NULL), SFM_BAD_ARGUMENT);
    FAILS(sfm_send_to(NULL, "errors", packet), SFM_BAD_ARGUMENT);
    DONE(sfm_set_any(packet, "x", SFM_INT));
    FAILS(sfm_send_to(self, "errors", packet), SFM_BAD_ARGUMENT);
    sfm_packet_clear(packet);
    DONE(sfm_set_int(packet, "src", 1));
    FAILS(sfm_send_to(self, "errors", packet), SFM_BAD_ARGUMENT);
    sfm_packet_free(packet);
    sfm_packet_free(NULL);
    sfm_packet_clear(NULL);
}

static void messages(void)
{
    sfm_packet *packet = sfm_packet_new();
    sfm_message *message;
    const char *text;
    const void *bytes;
    size_t length;
    sfm_array array;
    int64_t number;
    double real;
    int found;

    DONE(sfm_set_int(packet, "number", 1));
    DONE(sfm_set_double(packet, "real", 2.5));
    DONE(sfm_set_text(packet, "text", "t"));
    DONE(sfm_set_bytes(packet, "bytes", "b", 1));
    DONE(sfm_set_array(packet, "array", SFM_UINT8, "a", 0, NULL));
    DONE(sfm_send_to(self, "errors", packet));
    FAILS(sfm_recv(self, packet, SFM_NOW, &message), SFM_BAD_ARGUMENT);
    FAILS(sfm_recv(self, NULL, NAN, &message), SFM_BAD_ARGUMENT);
    FAILS(sfm_recv(self, NULL, SFM_NOW, NULL), SFM_BAD_ARGUMENT);
    DONE(sfm_recv(self, NULL, SFM_NOW, &message));
    FAILS(sfm_get_int(message, "missing", &number), SFM_NO_ATTRIBUTE);
    FAILS(sfm_get_int(message, "real", &number), SFM_WRONG_TYPE);
    FAILS(sfm_get_double(message, "text", &real), SFM_WRONG_TYPE);
    FAILS(sfm_get_text(message, "bytes", &text, NULL), SFM_WRONG_TYPE);
    FAILS(sfm_get_bytes(message, "array", &bytes, &length), SFM_WRONG_TYPE);
    FAILS(sfm_get_array(message, "number", &array), SFM_WRONG_TYPE);
    FAILS(sfm_get_int(message, "number", NULL), SFM_BAD_ARGUMENT);
    FAILS(sfm_get_int(NULL, "number", &number), SFM_BAD_ARGUMENT);
    DONE(sfm_get_double(message, "number", &real));
    CHECK(real == 1.0 && sfm_type_of(message, "missing") == SFM_ABSENT);
    CHECK(sfm_attribute(message, 7) == NULL && sfm_attribute(message, -1) == NULL);
    DONE(sfm_get_array(message, "array", &array));
    CHECK(array.dimensions == 0 && array.count == 1 && *(char *)array.data == 'a');
    sfm_release(message);
    sfm_release(NULL);
    FAILS(sfm_recv(self, NULL, SFM_NOW, &message), SFM_WOULD_BLOCK);
    FAILS(sfm_recv(self, NULL, 0.01, &message), SFM_TIMED_OUT);
    FAILS(sfm_wait_for(self, "nobody", 0.01), SFM_TIMED_OUT);
    DONE(sfm_wait_for(self, "errors", SFM_NOW));
    DONE(sfm_peek(self, NULL, &found));
    CHECK(!found);
    sfm_packet_free(packet);
}

static void ends(void)
{
    sfm_message *message;
    int status;

    signal(SIGALRM, interrupt);
    alarm(1);
    FAILS(sfm_recv(self, NULL, SFM_FOREVER, &message), SFM_INTERRUPTED);
    fflush(stdout);
    if (fork() == 0) {
        FAILS(sfm_recv(self, NULL, SFM_FOREVER, &message), SFM_CLOSED);
        sfm_leave(self);
        exit(0); /* and what is done at the end of a program is its parent's business */
    }
    CHECK(wait(&status) > 0 && status == 0);
    DONE(sfm_wait_for(self, "errors", SFM_NOW)); /* the parent is in its world as before */
    sfm_leave(self);
    FAILS(sfm_recv(self, NULL, SFM_FOREVER, &message), SFM_CLOSED);
    FAILS(sfm_interrupt(self), SFM_CLOSED);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 && strstr(sfm_error_text(), "no call"));
    join(argv[1]);
    packets();
    messages();
    ends();
    return 0;
}
