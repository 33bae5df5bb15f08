/* Master and workers: a worker that has answered gets the next row; tags tell work from the end.
 *
 * ranks: 4
 * expected:
 *   ....................................
 *   ........................*...........
 *   ........................***.........
 *   ..................***********.......
 *   ...........****..**************.....
 *   ..***************************.......
 *   ...........****..**************.....
 *   ..................***********.......
 *   ........................***.........
 *   ........................*...........
 *   ....................................
 *   each row came once: yes
 */
#include <complex.h>
#include <mpi.h>
#include <stdio.h>
#define WIDTH 36
#define HEIGHT 11

enum { WORK = 1, ANSWER, END };

static void row(int number, char *line) {
    for (int j = 0; j < WIDTH; j++) {
        double complex c = -2.1 + 3.0 * j / WIDTH + (-1.2 + 2.4 * (number + 0.5) / HEIGHT) * I, z = 0;
        int steps = 0;
        while (steps < 40 && creal(z) * creal(z) + cimag(z) * cimag(z) < 4) z = z * z + c, steps++;
        line[j] = steps < 40 ? '.' : '*';
    }
    line[WIDTH] = 0;
}

int main(int argc, char **argv) {
    int rank, size;
    char line[WIDTH + 1];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Status status;
    int next = 0, number;
    if (rank == 0) {
        char picture[HEIGHT][WIDTH + 1];
        int came[HEIGHT] = {0}, given[size], working = 0, once = 1;
        for (int worker = 1; worker < size; worker++, working++) {
            given[worker] = next;
            MPI_Send(&next, 1, MPI_INT, worker, WORK, MPI_COMM_WORLD);
            next++;
        }
        while (working > 0) {
            MPI_Recv(line, WIDTH + 1, MPI_CHAR, MPI_ANY_SOURCE, ANSWER, MPI_COMM_WORLD, &status);
            int worker = status.MPI_SOURCE;
            came[given[worker]]++;
            sprintf(picture[given[worker]], "%s", line);
            given[worker] = next;
            MPI_Send(&next, 1, MPI_INT, worker, next < HEIGHT ? WORK : END, MPI_COMM_WORLD);
            if (next < HEIGHT) next++;
            else working--;
        }
        for (int i = 0; i < HEIGHT; i++) printf("%s\n", picture[i]), once &= came[i] == 1;
        printf("each row came once: %s\n", once ? "yes" : "no");
    } else {
        for (;;) {
            MPI_Recv(&number, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            if (status.MPI_TAG == END) break;
            row(number, line);
            MPI_Send(line, WIDTH + 1, MPI_CHAR, 0, ANSWER, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    return 0;
}
