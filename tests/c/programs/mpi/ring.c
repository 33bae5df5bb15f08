/* A token goes round three times; each rank adds its number.
 *
 * ranks: 4
 * arguments: 3
 * expected:
 *   after round 1 the token is 6
 *   after round 2 the token is 12
 *   after round 3 the token is 18
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, size, token = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    for (int round = 1; round <= rounds; round++) {
        if (rank == 0) {
            MPI_Send(&token, 1, MPI_INT, next, round, MPI_COMM_WORLD);
            MPI_Recv(&token, 1, MPI_INT, previous, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            printf("after round %d the token is %d\n", round, token);
        } else {
            MPI_Recv(&token, 1, MPI_INT, previous, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            token += rank;
            MPI_Send(&token, 1, MPI_INT, next, round, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    return 0;
}
