/* leaks WORLD: after many messages and endpoints no memory and no descriptor is held but at first. */
#include "check.h"
#include <dirent.h>
#include <malloc.h>

static long descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    long count = 0;

    CHECK(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void round_of(const char *world, int messages)
{
    static char large[1 << 16];
    const size_t shape = sizeof large;
    sfm_endpoint *self, *other;
    sfm_packet *packet = sfm_packet_new();

    DONE(sfm_join(world, "one", SFM_ANY_RANK, &self));
    DONE(sfm_join(world, "two", SFM_ANY_RANK, &other));
    DONE(sfm_set_text(packet, "text", "text"));
    DONE(sfm_set_array(packet, "large", SFM_INT8, large, 1, &shape));
    for (int i = 0; i < messages; i++) {
        sfm_message *message;
        const char *text;
        int64_t number;

        DONE(sfm_set_int(packet, "number", i));
        DONE(sfm_send_to(self, i % 2 ? "one" : "two", packet));
        DONE(sfm_recv(i % 2 ? self : other, NULL, SFM_FOREVER, &message));
        DONE(sfm_get_text(message, "text", &text, NULL));
        CHECK(sfm_get_int(message, "text", &number) == SFM_WRONG_TYPE);
        CHECK(sfm_attribute(message, 0) && sfm_src(message));
        sfm_release(message);
    }
    sfm_packet_free(packet);
    sfm_leave(other);
    sfm_leave(self);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    round_of(argv[1], 10);
    size_t before = mallinfo2().uordblks;
    long open = descriptors();
    for (int i = 0; i < 20; i++)
        round_of(argv[1], 500);
    size_t after = mallinfo2().uordblks;
    printf("%zu bytes at first, %zu at the end\n", before, after);
    CHECK(after < before + (64 << 10));
    CHECK(descriptors() == open);
    return 0;
}
