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
    struct stream *stream = about;
    MPI_Request requests[WINDOW];
    char reply = 0;
    if (stream->rank == 0) {
        for (int i = 0; i < stream->window; i++)
            MPI_Isend(stream->data, stream->bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(stream->window, requests, MPI_STATUSES_IGNORE);
        MPI_Recv(&reply, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (stream->rank == 1) {
        /* The same memory for all messages: the program does not read any of them. */
        for (int i = 0; i < stream->window; i++)
            MPI_Irecv(stream->data, stream->bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(stream->window, requests, MPI_STATUSES_IGNORE);
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
        struct stream stream = {.bytes = atoi(argv[i]), .window = WINDOW};
        MPI_Comm_rank(MPI_COMM_WORLD, &stream.rank);
        if (stream.bytes > WINDOW_BYTES / WINDOW)
            stream.window = WINDOW_BYTES / stream.bytes > 2 ? WINDOW_BYTES / stream.bytes : 2;
        stream.data = memory(stream.bytes);
        measure(window, &stream, atof(argv[1]), &found);
        if (stream.rank == 0)
            report("stream", stream.bytes, &found, stream.window);
        free(stream.data);
    }
    MPI_Finalize();
    return 0;
}
