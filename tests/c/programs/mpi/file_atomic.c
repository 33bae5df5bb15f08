/* The atomic mode: of processes that write to the same place at the same time, a reader sees the bytes
 * of one, never some of each.
 *
 * ranks: 3
 * expected:
 *   in a row: 0 mixed
 *   with gaps: 0 mixed
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 1 << 18, BLOCKS = 32, ROUNDS = 20 };

static char data[BYTES];

/* Write and read all of it again and again; how often it was of several. */
static int mixed(MPI_File file, int rank, int count) {
    int times = 0;
    for (int round = 0; round < ROUNDS; round++) {
        memset(data, 'a' + (rank + round) % 26, count);
        MPI_File_write_at(file, 0, data, count, MPI_CHAR, MPI_STATUS_IGNORE);
        MPI_File_read_at(file, 0, data, count, MPI_CHAR, MPI_STATUS_IGNORE);
        times += memcmp(data, data + 1, count - 1) != 0;
    }
    MPI_Allreduce(MPI_IN_PLACE, &times, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return times;
}

int main(int argc, char **argv) {
    char name[] = "/tmp/file-atomic-XXXXXX";
    int rank, times;
    MPI_File file;
    MPI_Datatype type;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) close(mkstemp(name));
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_set_atomicity(file, 1);
    times = mixed(file, rank, BYTES);
    if (rank == 0) printf("in a row: %d mixed\n", times);
    MPI_Type_vector(BLOCKS, BYTES / BLOCKS / 2, BYTES / BLOCKS, MPI_CHAR, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, 0, MPI_CHAR, type, "native", MPI_INFO_NULL);
    times = mixed(file, rank, BYTES / 2);
    if (rank == 0) printf("with gaps: %d mixed\n", times);
    MPI_Type_free(&type);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
