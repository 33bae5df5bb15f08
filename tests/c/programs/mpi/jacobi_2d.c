/* Laplace's equation on a square: a grid of ranks, halos as rows and as columns (a vector type).
 *
 * ranks: 4
 * expected:
 *   2 x 2 ranks, each 8 x 8 points
 *   as on one rank: yes
 *   nearer to the solution: yes
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#define N 8
#define ALL (2 * N)
#define STEPS 30

static double border(int row, int column) { return row + 2 * column; } /* a plane solves it */

/* One step on the points within the frame of a square with `width` elements in a row. */
static double relax(double *u, double *v, int width) {
    double change = 0;
    for (int i = 1; i < width - 1; i++)
        for (int j = 1; j < width - 1; j++) {
            double *at = u + i * width + j;
            v[i * width + j] = (at[-width] + at[width] + at[-1] + at[1]) / 4;
            change = fmax(change, fabs(v[i * width + j] - *at));
        }
    for (int i = 1; i < width - 1; i++) memcpy(u + i * width + 1, v + i * width + 1, (width - 2) * sizeof *u);
    return change;
}

int main(int argc, char **argv) {
    int size, rank, side[2] = {0, 0}, open[2] = {0, 0}, at[2], up, down, left, right;
    double u[N + 2][N + 2], v[N + 2][N + 2], alone[ALL + 2][ALL + 2], spare[ALL + 2][ALL + 2];
    double first = 0, last = 0, change;
    MPI_Comm grid;
    MPI_Datatype column;
    MPI_Request halo[8];
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, side);
    MPI_Cart_create(MPI_COMM_WORLD, 2, side, open, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_coords(grid, rank, 2, at);
    MPI_Cart_shift(grid, 0, 1, &up, &down);
    MPI_Cart_shift(grid, 1, 1, &left, &right);
    MPI_Type_vector(N, 1, N + 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < ALL + 2; i++)
        for (int j = 0; j < ALL + 2; j++)
            alone[i][j] = i % (ALL + 1) == 0 || j % (ALL + 1) == 0 ? border(i, j) : 0;
    for (int i = 0; i < N + 2; i++)
        for (int j = 0; j < N + 2; j++) u[i][j] = alone[at[0] * N + i][at[1] * N + j];
    for (int step = 0; step < STEPS; step++) {
        MPI_Irecv(&u[0][1], N, MPI_DOUBLE, up, 0, grid, &halo[0]);
        MPI_Irecv(&u[N + 1][1], N, MPI_DOUBLE, down, 1, grid, &halo[1]);
        MPI_Irecv(&u[1][0], 1, column, left, 2, grid, &halo[2]);
        MPI_Irecv(&u[1][N + 1], 1, column, right, 3, grid, &halo[3]);
        MPI_Isend(&u[N][1], N, MPI_DOUBLE, down, 0, grid, &halo[4]);
        MPI_Isend(&u[1][1], N, MPI_DOUBLE, up, 1, grid, &halo[5]);
        MPI_Isend(&u[1][N], 1, column, right, 2, grid, &halo[6]);
        MPI_Isend(&u[1][1], 1, column, left, 3, grid, &halo[7]);
        MPI_Waitall(8, halo, MPI_STATUSES_IGNORE);
        change = relax(&u[0][0], &v[0][0], N + 2);
        MPI_Allreduce(&change, &last, 1, MPI_DOUBLE, MPI_MAX, grid);
        if (step == 0) first = last;
        relax(&alone[0][0], &spare[0][0], ALL + 2);
    }
    int same = 1, all;
    for (int i = 1; i <= N; i++)
        for (int j = 1; j <= N; j++) same &= u[i][j] == alone[at[0] * N + i][at[1] * N + j];
    MPI_Reduce(&same, &all, 1, MPI_INT, MPI_LAND, 0, grid);
    if (rank == 0) {
        printf("%d x %d ranks, each %d x %d points\n", side[0], side[1], N, N);
        printf("as on one rank: %s\n", all ? "yes" : "no");
        printf("nearer to the solution: %s\n", last < first / 10 ? "yes" : "no");
    }
    MPI_Type_free(&column);
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
