/* Two ranks send arrays of 0 bytes to 8 MB to and fro; each side checks and changes every element.
 *
 * ranks: 2
 * expected:
 *   0 bytes: 0 wrong
 *   8 bytes: 0 wrong
 *   8192 bytes: 0 wrong
 *   131072 bytes: 0 wrong
 *   8388608 bytes: 0 wrong
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, counts[] = {0, 1, 1 << 10, 1 << 14, 1 << 20};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double *data = malloc(sizeof(double) * (1 << 20));
    for (int size = 0; size < 5; size++) {
        int count = counts[size], wrong = 0, rounds = 4;
        for (int i = 0; i < count; i++) data[i] = i;
        for (int round = 0; round < rounds; round++) {
            if (rank == round % 2) {
                MPI_Send(data, count, MPI_DOUBLE, 1 - rank, size, MPI_COMM_WORLD);
            } else {
                MPI_Status status;
                int got;
                for (int i = 0; i < count; i++) data[i] = -1;
                MPI_Recv(data, count, MPI_DOUBLE, 1 - rank, size, MPI_COMM_WORLD, &status);
                MPI_Get_count(&status, MPI_DOUBLE, &got);
                wrong += got != count || status.MPI_SOURCE != 1 - rank || status.MPI_TAG != size;
                for (int i = 0; i < count; i++) {
                    wrong += data[i] != i + round;
                    data[i] += 1;
                }
            }
        }
        int all;
        MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0) printf("%d bytes: %d wrong\n", count * (int)sizeof(double), all);
    }
    free(data);
    MPI_Finalize();
    return 0;
}
