/* templates WORLD NAME: take what the sender has sent in another order, by templates. */
#include "check.h"

static sfm_endpoint *self;
static sfm_packet *wanted;

/* Take the message that fits, and the number that it carries; the template is empty then. */
static int64_t taken(void)
{
    sfm_message *message;
    int64_t number;
    int found;

    DONE(sfm_recv(self, wanted, SFM_FOREVER, &message));
    DONE(sfm_get_int(message, "number", &number));
    CHECK(strcmp(sfm_src(message), "0") == 0 && sfm_rank(self) == 1);
    sfm_release(message);
    DONE(sfm_peek(self, wanted, &found));
    CHECK(!found);
    CHECK(sfm_recv(self, wanted, SFM_NOW, &message) == SFM_WOULD_BLOCK);
    CHECK(sfm_recv(self, wanted, 0.001, &message) == SFM_TIMED_OUT);
    sfm_packet_clear(wanted);
    return number;
}

int main(int argc, char **argv)
{
    char text[3001];

    CHECK(argc == 3);
    DONE(sfm_join(argv[1], argv[2], SFM_ANY_RANK, &self));
    wanted = sfm_packet_new();
    DONE(sfm_set_text(wanted, "tag", "last"));
    CHECK(taken() == 99);
    DONE(sfm_set_double(wanted, "x", 2.0)); /* equal to the integer */
    CHECK(taken() == 1);
    DONE(sfm_set_int(wanted, "x", 3)); /* equal to the double */
    CHECK(taken() == 2);
    DONE(sfm_set_double(wanted, "x", 0.5));
    CHECK(taken() == 3);
    DONE(sfm_set_double(wanted, "x", 1e300));
    CHECK(taken() == 4);
    DONE(sfm_set_bytes(wanted, "key", "\0\1", 2));
    CHECK(taken() == 5);
    memset(text, 'y', 3000);
    text[3000] = 0;
    DONE(sfm_set_text(wanted, "tag", text));
    CHECK(taken() == 6);
    DONE(sfm_set_any(wanted, "z", SFM_DOUBLE));
    DONE(sfm_set_int(wanted, "src", 0));
    CHECK(taken() == 8);
    DONE(sfm_set_any(wanted, "z", SFM_ARRAY));
    CHECK(taken() == 9);
    DONE(sfm_set_any(wanted, "z", SFM_ANY));
    DONE(sfm_set_text(wanted, "src", "0"));
    CHECK(taken() == 7);
    sfm_packet_free(wanted);
    sfm_leave(self);
    return 0;
}
