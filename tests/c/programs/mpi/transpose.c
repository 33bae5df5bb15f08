/* A matrix is transposed while it travels: sent by rows, received by columns; then by Alltoall.
 *
 * ranks: 4
 * expected:
 *   0 10 20 30
 *   1 11 21 31
 *   2 12 22 32
 *   3 13 23 33
 *   by alltoall: 0 wrong
 *   every second of every second row: 0 wrong
 */
#include <mpi.h>
#include <stdio.h>
#define N 4

int main(int argc, char **argv) {
    int rank, size, a[N][N], b[N][N], wrong = 0, all;
    MPI_Datatype column, columns, every;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_vector(N, 1, N, MPI_INT, &column);
    MPI_Type_create_hvector(N, 1, sizeof(int), column, &columns); /* column after column */
    MPI_Type_commit(&columns);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) a[i][j] = 10 * i + j;
    if (rank == 0) {
        MPI_Sendrecv(a, N * N, MPI_INT, 0, 0, b, 1, columns, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++) printf("%d %d %d %d\n", b[i][0], b[i][1], b[i][2], b[i][3]);
    }
    /* Each rank has a row of the whole. */
    int row[N], got[N];
    for (int j = 0; j < size; j++) row[j] = 10 * rank + j;
    MPI_Alltoall(row, 1, MPI_INT, got, 1, MPI_INT, MPI_COMM_WORLD);
    for (int j = 0; j < size; j++) wrong += got[j] != 10 * j + rank;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("by alltoall: %d wrong\n", all);
    /* Every second element of every second row, to all. */
    MPI_Datatype half;
    MPI_Type_vector(N / 2, 1, 2, MPI_INT, &half);
    MPI_Type_create_hvector(N / 2, 1, 2 * N * sizeof(int), half, &every);
    MPI_Type_commit(&every);
    for (int i = 0; i < N * N; i++) b[i / N][i % N] = rank == 1 ? i : -1;
    MPI_Bcast(b, 1, every, 1, MPI_COMM_WORLD);
    wrong = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int sent = rank == 1 || (i % 2 == 0 && j % 2 == 0);
            wrong += b[i][j] != (sent ? i * N + j : -1);
        }
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("every second of every second row: %d wrong\n", all);
    MPI_Type_free(&column), MPI_Type_free(&columns), MPI_Type_free(&half), MPI_Type_free(&every);
    MPI_Finalize();
    return 0;
}
