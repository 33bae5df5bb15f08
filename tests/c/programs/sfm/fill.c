/* fill WORLD NAME DEST BUFFERING: send to DEST until that fails, and tell how. */
#include "check.h"

int main(int argc, char **argv)
{
    static double numbers[1 << 16];
    const size_t shape[] = {1 << 8, 1 << 8};
    sfm_endpoint *self;
    sfm_packet *packet = sfm_packet_new();
    int code;

    CHECK(argc == 5);
    DONE(sfm_join(argv[1], argv[2], SFM_ANY_RANK, &self));
    DONE(sfm_set_buffering(self, (size_t)atol(argv[4])));
    DONE(sfm_wait_for(self, argv[3], SFM_FOREVER));
    DONE(sfm_set_array(packet, "numbers", SFM_FLOAT64, numbers, 2, shape));
    while ((code = sfm_send_to(self, argv[3], packet)) == SFM_OK)
        ;
    printf("%d %s\n", code, sfm_error_text());
    sfm_packet_free(packet);
    sfm_leave(self);
    return 0;
}
