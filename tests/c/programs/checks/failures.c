/* Collectives whose processes disagree fail with an error that says so. A process whose call does not
   fail gets its data, even if the sender has its memory back. With an argument, no data is fetched
   from a sender's memory. */
#include "check.h"

#include <string.h>

enum { LARGE = 2 << 20 };

static void other_counts(void)
{
    int numbers[4] = {rank, rank, rank, rank}, own[2];
    int code = MPI_Bcast(numbers, rank == 0 ? 2 : 4, MPI_INT, 0, MPI_COMM_WORLD);
    char text[MPI_MAX_ERROR_STRING];
    int length;
    /* In a tree not every process hears it from the root, but the others get as much. */
    CHECK(rank == 0 ? code == MPI_SUCCESS : code != MPI_SUCCESS || rank > 1);
    if (rank == 1) {
        CHECK(code == MPI_ERR_COUNT);
        MPI_Error_string(code, text, &length);
        CHECK(strstr(text, "sends 8 bytes where 16 are expected") != NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    code = MPI_Gather(numbers, rank == 1 ? 2 : 1, MPI_INT, own, 1, MPI_INT, 0, MPI_COMM_SELF);
    CHECK(rank == 1 ? code == MPI_ERR_TRUNCATE : code == MPI_SUCCESS);
}

/* Every process refuses a send buffer that is also the receive buffer. */
static void memory_used_twice(void)
{
    int n[8] = {0}, all = MPI_ERR_BUFFER;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request request;
    CHECK(MPI_Allreduce(n, n, 4, MPI_INT, MPI_SUM, world) == all);
    CHECK(MPI_Allreduce(n, n + 3, 4, MPI_INT, MPI_SUM, world) == all);
    CHECK(MPI_Scan(n, n, 1, MPI_INT, MPI_SUM, world) == all);
    CHECK(MPI_Exscan(n, n, 1, MPI_INT, MPI_SUM, world) == all);
    CHECK(MPI_Reduce_scatter_block(n, n, 1, MPI_INT, MPI_SUM, world) == all);
    CHECK(MPI_Allgather(n + 1, 1, MPI_INT, n, 1, MPI_INT, world) == all);
    CHECK(MPI_Alltoall(n, 1, MPI_INT, n, 1, MPI_INT, world) == all);
    CHECK(MPI_Iallreduce(n, n, 1, MPI_INT, MPI_SUM, world, &request) == all);
    CHECK(MPI_Reduce(n, n, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_SELF) == all);
    CHECK(MPI_Gather(n, 1, MPI_INT, n, 1, MPI_INT, 0, MPI_COMM_SELF) == all);
    CHECK(MPI_Scatter(n, 1, MPI_INT, n, 1, MPI_INT, 0, MPI_COMM_SELF) == all);
    CHECK(MPI_Allreduce(n, n + 4, 4, MPI_INT, MPI_SUM, world) == MPI_SUCCESS);
}

/* Rank 1 expects less of rank 0 than comes, and fails while its own message has yet to go. */
static void memory_given_back(int nothing_is_fetched)
{
    int *out = malloc(LARGE * sizeof *out), *in = malloc(LARGE * sizeof *in);
    int sent[2] = {0, 0}, come[2] = {0, 0}, at[2] = {0, 0};
    MPI_Comm two;
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, 0, &two);
    if (rank < 2) {
        MPI_Comm_set_errhandler(two, MPI_ERRORS_RETURN);
        for (int i = 0; i < LARGE; i++) out[i] = i;
        sent[1 - rank] = rank == 0 ? 2 : LARGE;
        come[1 - rank] = rank == 0 ? LARGE : 1;
        int code = MPI_Alltoallv(out, sent, at, MPI_INT, in, come, at, MPI_INT, two);
        CHECK(code == (rank == 0 ? MPI_SUCCESS : MPI_ERR_TRUNCATE));
        if (rank == 1) memset(out, 0xff, LARGE * sizeof *out);
        for (int i = 0; i < LARGE && rank == 0 && nothing_is_fetched; i++) CHECK(in[i] == i);
        MPI_Barrier(two);
        MPI_Comm_free(&two);
    }
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    other_counts();
    memory_used_twice();
    memory_given_back(argc > 1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("all failures are right\n");
    MPI_Finalize();
    return 0;
}
