/* Collectives that are given one buffer for what is sent and what is received: an error, and with
 * MPI_IN_PLACE none.
 *
 * ranks: 2
 * expected:
 *   refused: reduce allreduce scan exscan reduce_scatter gather scatter allgather alltoall local
 *   in place: 3
 */
#include <mpi.h>
#include <stdio.h>

static int rank;

static void tried(const char *name, int code) {
    int class;
    MPI_Error_class(code, &class);
    if (rank == 0 && class == MPI_ERR_BUFFER) printf(" %s", name);
}

int main(int argc, char **argv) {
    int all[4] = {1, 2, 3, 4}, counts[2] = {1, 1};
    MPI_Init(&argc, &argv);
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    if (rank == 0) printf("refused:");
    /* Rank 0 is told; the other one must not wait for it. */
    if (rank == 0) tried("reduce", MPI_Reduce(all, all, 2, MPI_INT, MPI_SUM, 0, world));
    tried("allreduce", MPI_Allreduce(all, all, 2, MPI_INT, MPI_SUM, world));
    tried("scan", MPI_Scan(all, all, 2, MPI_INT, MPI_SUM, world));
    tried("exscan", MPI_Exscan(all, all, 2, MPI_INT, MPI_SUM, world));
    tried("reduce_scatter", MPI_Reduce_scatter(all, all, counts, MPI_INT, MPI_SUM, world));
    if (rank == 0) tried("gather", MPI_Gather(all, 2, MPI_INT, all, 2, MPI_INT, 0, world));
    if (rank == 0) tried("scatter", MPI_Scatter(all, 2, MPI_INT, all, 2, MPI_INT, 0, world));
    tried("allgather", MPI_Allgather(all + 2 * rank, 2, MPI_INT, all, 2, MPI_INT, world));
    tried("alltoall", MPI_Alltoall(all, 2, MPI_INT, all, 2, MPI_INT, world));
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    tried("local", MPI_Reduce_local(all, all, 2, MPI_INT, MPI_SUM));
    if (rank == 0) printf("\n");
    all[0] = rank + 1;
    MPI_Allreduce(MPI_IN_PLACE, all, 1, MPI_INT, MPI_SUM, world);
    if (rank == 0) printf("in place: %d\n", all[0]);
    MPI_Finalize();
    return 0;
}
