/* The upper triangle of a matrix as an indexed type, a diagonal and a border as others.
 *
 * ranks: 2
 * expected:
 *   11 12 13 14
 *    . 22 23 24
 *    .  . 33 34
 *    .  .  . 44
 *   diagonal: 11 22 33 44
 *   corners: 11 14 41 44
 *   blocks: 11 12 31 32
 */
#include <mpi.h>
#include <stdio.h>
#define N 4

int main(int argc, char **argv) {
    int rank, a[N][N], lengths[N], starts[N], got[N];
    MPI_Datatype triangle, diagonal, corners, blocks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < N; i++) {
        lengths[i] = N - i;
        starts[i] = i * N + i;
        for (int j = 0; j < N; j++) a[i][j] = rank == 0 ? 10 * (i + 1) + j + 1 : 0;
    }
    MPI_Type_indexed(N, lengths, starts, MPI_INT, &triangle);
    MPI_Type_vector(N, 1, N + 1, MPI_INT, &diagonal);
    MPI_Aint places[] = {0, (N - 1) * sizeof(int), N * (N - 1) * sizeof(int), (N * N - 1) * sizeof(int)};
    int ones[] = {1, 1, 1, 1}, firsts[] = {0, 2 * N};
    MPI_Type_create_hindexed(4, ones, places, MPI_INT, &corners);
    MPI_Type_create_indexed_block(2, 2, firsts, MPI_INT, &blocks);
    MPI_Type_commit(&triangle), MPI_Type_commit(&diagonal);
    MPI_Type_commit(&corners), MPI_Type_commit(&blocks);
    if (rank == 0) {
        MPI_Send(a, 1, triangle, 1, 0, MPI_COMM_WORLD);
        MPI_Send(a, 1, diagonal, 1, 1, MPI_COMM_WORLD);
        MPI_Send(a, 1, corners, 1, 2, MPI_COMM_WORLD);
        MPI_Send(a, 1, blocks, 1, 3, MPI_COMM_WORLD);
    } else {
        const char *names[] = {"", "diagonal", "corners", "blocks"};
        MPI_Recv(a, 1, triangle, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                if (a[i][j]) printf("%2d", a[i][j]);
                else printf(" .");
                printf(j < N - 1 ? " " : "\n");
            }
        for (int tag = 1; tag <= 3; tag++) {
            MPI_Recv(got, N, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            printf("%s: %d %d %d %d\n", names[tag], got[0], got[1], got[2], got[3]);
        }
    }
    MPI_Type_free(&triangle), MPI_Type_free(&diagonal);
    MPI_Type_free(&corners), MPI_Type_free(&blocks);
    MPI_Finalize();
    return 0;
}
