/* Texts of unknown length: probed, counted, received into what has just room for them.
 *
 * ranks: 4
 * expected:
 *   21 characters from 1: greetings from rank 1
 *   22 characters from 2: greetings from rank 2!
 *   23 characters from 3: greetings from rank 3!!
 *   nothing more: yes
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    int rank, size, flag;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank > 0) {
        char text[64];
        int length = sprintf(text, "greetings from rank %d%.*s", rank, rank - 1, "!!!!!!");
        MPI_Send(text, length + 1, MPI_CHAR, 0, 10 + rank, MPI_COMM_WORLD);
    } else {
        char **texts = calloc(size, sizeof *texts);
        for (int i = 1; i < size; i++) {
            int count;
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_CHAR, &count);
            int source = status.MPI_SOURCE;
            texts[source] = malloc(count);
            MPI_Recv(texts[source], count, MPI_CHAR, source, 10 + source, MPI_COMM_WORLD, &status);
        }
        for (int i = 1; i < size; i++) {
            printf("%zu characters from %d: %s\n", strlen(texts[i]), i, texts[i]);
            free(texts[i]);
        }
        free(texts);
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
        printf("nothing more: %s\n", flag ? "no" : "yes");
    }
    MPI_Finalize();
    return 0;
}
