/* A program that comes to MPI_Finalize with unfinished work: its last word says what rank 1 leaves
 * unfinished, and the test finds the line by the same word. */
#include <mpi.h>
#include <string.h>

static const char *word;

static int is(const char *one)
{
    return strcmp(word, one) == 0;
}

int main(int argc, char **argv)
{
    MPI_Comm all = MPI_COMM_WORLD, pairs;
    MPI_Request one, other;
    MPI_Win memory;
    MPI_Message message;
    MPI_Session session;
    int rank, values[8] = {0};
    word = argv[argc - 1];
    if (is("session")) MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_dup(all, &pairs);
    MPI_Comm_set_name(pairs, "pairs");
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, all, &message, &memory);
    MPI_Win_set_name(memory, "memory");

    if (is("ibarrier")) MPI_Ibarrier(pairs, &one);
    if (is("probed") && rank == 0) MPI_Mprobe(1, 4, all, &message, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3 && rank == 1; i++) {
        if (is("irecv") || is("abort")) MPI_Irecv(&values[i], 1, MPI_INT, 0, 7, all, &one);
        if (is("sources")) MPI_Irecv(&values[i], 1, MPI_INT, i % 2, 7, all, &one);
        if (is("send")) MPI_Send(values, 1, MPI_INT, 0, 5, pairs);
        if (is("tags")) MPI_Send(values, 1, MPI_INT, 0, i, all);
    }
    if (rank == 1) {
        if (is("any") || is("session")) MPI_Irecv(values, 1, MPI_INT, MPI_ANY_SOURCE, 7, pairs, &one);
        if (is("isend")) MPI_Isend(values, 1, MPI_INT, 1, 3, all, &one);
        if (is("isend")) MPI_Recv(values + 1, 1, MPI_INT, 1, 3, all, MPI_STATUS_IGNORE);
        if (is("start")) {
            MPI_Recv_init(values, 1, MPI_INT, 0, 9, all, &one);
            MPI_Recv_init(values, 1, MPI_INT, 0, 9, all, &other); /* which is not started */
            MPI_Start(&one);
        }
        if (is("probed")) MPI_Send(values, 1, MPI_INT, 0, 4, all);
        if (is("psend")) MPI_Psend_init(values, 3, 1, MPI_INT, 0, 6, pairs, MPI_INFO_NULL, &one);
        if (is("psend")) MPI_Start(&one), MPI_Pready_range(0, 2, one), MPI_Wait(&one, MPI_STATUS_IGNORE);
        if (is("psend")) MPI_Request_free(&one);
        if (is("lock")) MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, memory);
    }
    if (is("clean")) {
        MPI_Psend_init(values, 1, 1, MPI_INT, 1 - rank, 6, all, MPI_INFO_NULL, &one);
        MPI_Request_free(&one); /* which was not started */
        MPI_Isend(values, 1, MPI_INT, rank, 3, all, &one);
        MPI_Request_free(&one);
        MPI_Irecv(values + 1, 1, MPI_INT, rank, 3, all, &one);
        MPI_Irecv(values + 2, 1, MPI_INT, 0, 8, all, &other);
        MPI_Cancel(&other);
        MPI_Wait(&one, MPI_STATUS_IGNORE);
        MPI_Wait(&other, MPI_STATUS_IGNORE);
        MPI_Win_fence(0, memory);
    }
    MPI_Barrier(all);
    if (is("abort") && rank == 0) MPI_Abort(all, 3);
    MPI_Finalize();
    return is("irecv") && rank == 1 ? 4 : 0;
}
