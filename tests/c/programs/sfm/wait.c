/* wait WORLD NAME SRC SECONDS: wait for a message of SRC, tell how that ended, and what came. */
#include "check.h"

int main(int argc, char **argv)
{
    sfm_endpoint *self;
    sfm_message *message = NULL;
    sfm_packet *wanted = sfm_packet_new();
    int64_t n;

    CHECK(argc == 5);
    DONE(sfm_join(argv[1], argv[2], SFM_ANY_RANK, &self));
    DONE(sfm_set_text(wanted, "src", argv[3]));
    DONE(sfm_set_int(wanted, "n", 7));
    printf("waits\n");
    fflush(stdout);
    int code = sfm_recv(self, wanted, atof(argv[4]), &message);
    printf("%d %s\n", code, code ? sfm_error_text() : "came");
    CHECK(code || (sfm_get_int(message, "n", &n) == SFM_OK && n == 7));
    sfm_release(message);
    sfm_packet_free(wanted);
    sfm_leave(self);
    return 0;
}
