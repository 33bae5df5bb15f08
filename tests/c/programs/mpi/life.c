/* The game of life on a torus: a glider has moved by two cells, down and right, after 8 steps.
 *
 * ranks: 4
 * arguments: 8
 * expected:
 *   ................
 *   ................
 *   ................
 *   ...#............
 *   ....#...........
 *   ..###...........
 *   ................
 *   ................
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define WIDTH 16
#define ROWS 2 /* of each rank */

typedef char Row[WIDTH];

static char lives(Row *row, int j) {
    int west = (j + WIDTH - 1) % WIDTH, east = (j + 1) % WIDTH, count = -(row[0][j] == '#');
    for (int i = -1; i <= 1; i++) count += (row[i][west] == '#') + (row[i][j] == '#') + (row[i][east] == '#');
    return count == 3 || (count == 2 && row[0][j] == '#') ? '#' : '.';
}

int main(int argc, char **argv) {
    int rank, size, steps = argc > 1 ? atoi(argv[1]) : 4;
    Row cells[ROWS + 2], next[ROWS + 2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    memset(cells, '.', sizeof cells);
    const int glider[5][2] = {{1, 1}, {2, 2}, {3, 0}, {3, 1}, {3, 2}};
    for (int k = 0; k < 5; k++)
        if (glider[k][0] / ROWS == rank) cells[1 + glider[k][0] % ROWS][glider[k][1]] = '#';
    int above = (rank + size - 1) % size, below = (rank + 1) % size;
    for (int step = 0; step < steps; step++) {
        MPI_Sendrecv(cells[ROWS], WIDTH, MPI_CHAR, below, 0, cells[0], WIDTH, MPI_CHAR, above, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(cells[1], WIDTH, MPI_CHAR, above, 1, cells[ROWS + 1], WIDTH, MPI_CHAR, below, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 1; i <= ROWS; i++)
            for (int j = 0; j < WIDTH; j++) next[i][j] = lives(&cells[i], j);
        memcpy(cells[1], next[1], ROWS * WIDTH);
    }
    Row *all = malloc(size * ROWS * sizeof(Row));
    MPI_Gather(cells[1], ROWS * WIDTH, MPI_CHAR, all, ROWS * WIDTH, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0)
        for (int i = 0; i < size * ROWS; i++) printf("%.*s\n", WIDTH, all[i]);
    free(all);
    MPI_Finalize();
    return 0;
}
