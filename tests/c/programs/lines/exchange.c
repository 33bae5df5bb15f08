/* exchange WORLD OWN OTHER: two of these wait for each other's message, each in its own line. */
#include <sfm.h>
#include <stdlib.h>
#include <string.h>

static sfm_endpoint *self;
static sfm_packet *wanted;

static int receive(void)
{
    sfm_message *message;
    return sfm_recv(self, wanted, SFM_FOREVER, &message);
}

int main(int argc, char **argv)
{
    sfm_message *message;

    if (argc != 4 || sfm_join(argv[1], argv[2], SFM_ANY_RANK, &self) != SFM_OK)
        return 1;
    wanted = sfm_packet_new();
    sfm_set_text(wanted, "src", argv[3]);
    if (sfm_wait_for(self, argv[3], SFM_FOREVER) != SFM_OK)
        return 2;
    if (strcmp(argv[2], "A") == 0)
        return receive();
    return 1 + sfm_recv(self, wanted, SFM_FOREVER, &message); /* else the two become one */
}
