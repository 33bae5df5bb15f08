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
    struct message *message = about;
    if (message->rank == 0) {
        MPI_Send(message->sent, message->bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(message->received, message->bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    } else if (message->rank == 1) {
        MPI_Recv(message->received, message->bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Send(message->received, message->bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
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
        struct message message = {.bytes = atoi(argv[i])};
        MPI_Comm_rank(MPI_COMM_WORLD, &message.rank);
        message.sent = memory(message.bytes);
        message.received = memory(message.bytes);
        memset(message.received, 0, message.bytes);
        trip(&message);
        if (memcmp(message.sent, message.received, message.bytes) != 0)
            fail("what came back is not what was sent");
        measure(trip, &message, atof(argv[1]), &found);
        if (message.rank == 0)
            report("one way", message.bytes, &found, 2);
        free(message.sent);
        free(message.received);
    }
    MPI_Finalize();
    return 0;
}
