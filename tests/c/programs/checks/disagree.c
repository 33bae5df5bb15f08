/* Processes that do not make the same collective calls; the argument says how. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, number = 1, sum = 0, size = 2, periodic = 1, numbers[2] = {1, 2}, sums[2];
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm all = MPI_COMM_WORLD;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(all, &rank);
    switch (atoi(argv[1])) {
    case 0: /* another call */
        if (rank == 0)
            MPI_Barrier(all);
        else
            MPI_Bcast(&number, 1, MPI_INT, 0, all);
        break;
    case 1: /* both send, and nobody waits */
        if (rank == 0)
            MPI_Bcast(&number, 1, MPI_INT, 0, all);
        else
            MPI_Reduce(&number, &sum, 1, MPI_INT, MPI_SUM, 0, all);
        break;
    case 2: /* one call more */
        if (rank == 1)
            MPI_Barrier(all);
        break;
    case 3: /* another root */
        MPI_Bcast(&number, 1, MPI_INT, rank, all);
        break;
    case 4: /* another call that goes on meanwhile; one process does not look */
        if (rank == 0) {
            MPI_Ibarrier(all, &request);
        } else {
            MPI_Iallreduce(&number, &sum, 1, MPI_INT, MPI_SUM, all, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        break;
    case 5: /* the same among neighbours */
        MPI_Cart_create(all, 1, &size, &periodic, 0, &all);
        if (rank == 0)
            MPI_Neighbor_allgather(&number, 1, MPI_INT, sums, 1, MPI_INT, all);
        else
            MPI_Neighbor_alltoall(numbers, 1, MPI_INT, sums, 1, MPI_INT, all);
        break;
    }
    MPI_Finalize();
    return 0;
}
