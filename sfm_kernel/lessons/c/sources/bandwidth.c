/* The bandwidth in one direction, when many messages are under way at once.
 *
 *     bandwidth SECONDS BYTES...
 *
 * Rank 0 begins to send a window of messages (MPI_Isend), and rank 1, which has begun to receive the
 * same number (MPI_Irecv), replies when it has all of them. A window has 64 messages, but at most
 * 64 MB. Rank 0 prints a line of JSON for each size, in microseconds of one message.
 * Source: Chou, Nestinger and Cheng, "Ch MPI", bandwidth testing (Fig. 8).
 */
#include "measure.h"

enum { WINDOW = 64, WINDOW_BYTES = 64 << 20 };

struct stream {
    char *data;
    int bytes, rank, window;
};

static void window(void *about)
{
    struct stream *one = about;
    MPI_Request requests[WINDOW];
    char reply = 0;
    if (one->rank == 0) {
        for (int i = 0; i < one->window; i++)
            MPI_Isend(one->data, one->bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(one->window, requests, MPI_STATUSES_IGNORE);
        MPI_Recv(&reply, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (one->rank == 1) {
        /* The same memory for all messages: the program does not read any of them. */
        for (int i = 0; i < one->window; i++)
            MPI_Irecv(one->data, one->bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(one->window, requests, MPI_STATUSES_IGNORE);
        MPI_Send(&reply, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
}

int main(int argc, char *argv[])
{
    static struct batches found;
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3 || size != 2)
        fail("usage: 2 processes of: bandwidth SECONDS BYTES...");
    for (int i = 2; i < argc; i++) {
        struct stream one = {.bytes = atoi(argv[i]), .window = WINDOW};
        MPI_Comm_rank(MPI_COMM_WORLD, &one.rank);
        if (one.bytes > WINDOW_BYTES / WINDOW)
            one.window = WINDOW_BYTES / one.bytes > 2 ? WINDOW_BYTES / one.bytes : 2;
        one.data = memory(one.bytes);
        measure(window, &one, atof(argv[1]), &found);
        if (one.rank == 0)
            report("stream", one.bytes, &found, one.window);
        free(one.data);
    }
    MPI_Finalize();
    return 0;
}
