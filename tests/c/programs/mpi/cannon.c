/* Cannon's matrix multiplication: blocks move left and up on a periodic 2 x 2 grid.
 *
 * ranks: 4
 * expected:
 *   grid 2 x 2
 *   wrong elements: 0
 */
#include <mpi.h>
#include <stdio.h>
#define N 8 /* rows of a block */

static void shift(double *block, int dimension, int steps, MPI_Comm grid) {
    int source, dest;
    MPI_Cart_shift(grid, dimension, -steps, &source, &dest);
    MPI_Sendrecv_replace(block, N * N, MPI_DOUBLE, dest, 0, source, 0, grid, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int size, rank, wrong = 0, all, sides[2] = {0, 0}, periods[2] = {1, 1}, here[2];
    double a[N][N], b[N][N], c[N][N] = {{0}};
    MPI_Comm grid;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, sides);
    MPI_Cart_create(MPI_COMM_WORLD, 2, sides, periods, 1, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_coords(grid, rank, 2, here);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int row = here[0] * N + i, column = here[1] * N + j;
            a[i][j] = row + column;
            b[i][j] = row - 2 * column;
        }
    shift(&a[0][0], 1, here[0], grid);
    shift(&b[0][0], 0, here[1], grid);
    for (int step = 0; step < sides[0]; step++) {
        for (int i = 0; i < N; i++)
            for (int k = 0; k < N; k++)
                for (int j = 0; j < N; j++) c[i][j] += a[i][k] * b[k][j];
        shift(&a[0][0], 1, 1, grid);
        shift(&b[0][0], 0, 1, grid);
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int row = here[0] * N + i, column = here[1] * N + j;
            double sum = 0;
            for (int k = 0; k < N * sides[0]; k++) sum += (double)(row + k) * (k - 2 * column);
            wrong += c[i][j] != sum;
        }
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, grid);
    if (rank == 0) printf("grid %d x %d\nwrong elements: %d\n", sides[0], sides[1], all);
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
