/* pickles WORLD NAME: names values that only Python can open, and reads the rest of the message. */
#include "check.h"

int main(int argc, char **argv)
{
    sfm_endpoint *self;
    sfm_message *message;
    sfm_array array;
    const char *text;
    int64_t number;

    CHECK(argc == 3);
    DONE(sfm_join(argv[1], argv[2], SFM_ANY_RANK, &self));
    DONE(sfm_recv(self, NULL, SFM_FOREVER, &message));
    CHECK(sfm_type_of(message, "list") == SFM_OBJECT && sfm_type_of(message, "none") == SFM_NONE);
    CHECK(sfm_get_array(message, "list", &array) == SFM_NEEDS_PYTHON);
    printf("%s\n", sfm_error_text());
    CHECK(sfm_get_int(message, "huge", &number) == SFM_NEEDS_PYTHON);
    printf("%s\n", sfm_error_text());
    CHECK(sfm_get_text(message, "none", &text, NULL) == SFM_WRONG_TYPE);
    printf("%s\n", sfm_error_text());
    DONE(sfm_get_int(message, "truth", &number));
    CHECK(number == 1);
    DONE(sfm_get_array(message, "columns", &array));
    CHECK(array.element == SFM_INT32 && array.first_fastest && array.dimensions == 2);
    CHECK(array.shape[0] == 2 && array.shape[1] == 3 && array.count == 6 && array.size == 4);
    CHECK(((int32_t *)array.data)[1] == 3); /* the second row's first */
    sfm_release(message);
    sfm_leave(self);
    return 0;
}
