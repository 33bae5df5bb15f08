/* Persistent collectives that are started in another order than they were made, again and again.
 *
 * ranks: 3
 * expected:
 *   sums: 3 6 9
 *   heard from rank 2: 20 40 60
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, one, sum, heard, sums[3], all[3];
    MPI_Request requests[3];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Bcast_init(&heard, 1, MPI_INT, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
    for (int round = 1; round <= 3; round++) {
        one = round;
        heard = rank * 10 * round;
        for (int nth = 0; nth < 3; nth++) MPI_Start(&requests[(nth + rank + round) % 3]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        sums[round - 1] = sum;
        all[round - 1] = heard;
    }
    for (int nth = 0; nth < 3; nth++) MPI_Request_free(&requests[nth]);
    if (rank == 0) {
        printf("sums: %d %d %d\n", sums[0], sums[1], sums[2]);
        printf("heard from rank 2: %d %d %d\n", all[0], all[1], all[2]);
    }
    MPI_Finalize();
    return 0;
}
