/* The time of a message one way: half of a round trip between ranks 0 and 1.
 *
 *     pingpong SECONDS BYTES...
 *
 * Rank 0 prints a line of JSON for each size, after it has checked that its message came back
 * unchanged. Source: Chou, Nestinger and Cheng, "Ch MPI", latency testing (Fig. 9).
 */
#include <string.h>

#include "measure.h"

struct message {
    char *sent, *received;
    int bytes, rank;
};

static void trip(void *about)
{
    struct message *one = about;
    if (one->rank == 0) {
        MPI_Send(one->sent, one->bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(one->received, one->bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (one->rank == 1) {
        MPI_Recv(one->received, one->bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(one->received, one->bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

int main(int argc, char *argv[])
{
    static struct batches found;
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3 || size != 2)
        fail("usage: 2 processes of: pingpong SECONDS BYTES...");
    for (int i = 2; i < argc; i++) {
        struct message one = {.bytes = atoi(argv[i])};
        MPI_Comm_rank(MPI_COMM_WORLD, &one.rank);
        one.sent = memory(one.bytes);
        one.received = memory(one.bytes);
        memset(one.received, 0, one.bytes);
        trip(&one);
        if (memcmp(one.sent, one.received, one.bytes) != 0)
            fail("what came back is not what was sent");
        measure(trip, &one, atof(argv[1]), &found);
        if (one.rank == 0)
            report("one way", one.bytes, &found, 2);
        free(one.sent);
        free(one.received);
    }
    MPI_Finalize();
    return 0;
}
