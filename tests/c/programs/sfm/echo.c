/* echo WORLD NAME: send back what comes, attribute by attribute, until a message has the tag "end". */
#include "check.h"

static void copy(const sfm_message *from, const char *name, sfm_packet *to)
{
    int64_t number;
    double real;
    const char *text;
    const void *bytes;
    size_t length;
    sfm_array array;

    switch (sfm_type_of(from, name)) {
    case SFM_INT:
        DONE(sfm_get_int(from, name, &number));
        DONE(sfm_set_int(to, name, number));
        break;
    case SFM_DOUBLE:
        DONE(sfm_get_double(from, name, &real));
        DONE(sfm_set_double(to, name, real));
        break;
    case SFM_TEXT:
        DONE(sfm_get_text(from, name, &text, &length));
        CHECK(strlen(text) == length);
        DONE(sfm_set_text(to, name, text));
        break;
    case SFM_BYTES:
        DONE(sfm_get_bytes(from, name, &bytes, &length));
        DONE(sfm_set_bytes(to, name, bytes, length));
        break;
    case SFM_ARRAY:
        DONE(sfm_get_array(from, name, &array));
        CHECK(!array.first_fastest);
        DONE(sfm_set_array(to, name, array.element, array.data, array.dimensions, array.shape));
        break;
    default:
        CHECK(!"an attribute of a type that can be sent");
    }
}

int main(int argc, char **argv)
{
    sfm_endpoint *self;
    sfm_packet *reply = sfm_packet_new();

    CHECK(argc == 3);
    DONE(sfm_join(argv[1], argv[2], SFM_ANY_RANK, &self));
    for (int ended = 0; !ended;) {
        sfm_message *message;
        const char *name, *tag;

        DONE(sfm_recv(self, NULL, SFM_FOREVER, &message));
        sfm_packet_clear(reply);
        for (int i = 0; (name = sfm_attribute(message, i)); i++) {
            if (strcmp(name, "src") && strcmp(name, "dest"))
                copy(message, name, reply);
        }
        ended = sfm_get_text(message, "tag", &tag, NULL) == SFM_OK && !strcmp(tag, "end");
        DONE(sfm_send_to(self, sfm_src(message), reply));
        sfm_release(message);
    }
    sfm_packet_free(reply);
    sfm_leave(self);
    return 0;
}
