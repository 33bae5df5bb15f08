/* Reads and writes that are begun by one call and ended by another: requests, and split collectives.
 *
 * ranks: 3
 * expected:
 *   requests: 30 bytes written, 0 wrong
 *   the end of the file: 4, 1 and 0 of 5 items
 *   collective requests: 0 wrong
 *   split collectives: 0 wrong
 *   one at a time: MPI_ERR_IO; none was begun: MPI_ERR_IO
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EACH = 5 };

static int rank, size;

static int count_of(MPI_Status *status) {
    int count;
    MPI_Get_count(status, MPI_SHORT, &count);
    return count;
}

static void sum(int *wrong) {
    MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static int differ(const short *in, int from) {
    int wrong = 0;
    for (int i = 0; i < EACH; i++) wrong += in[i] != from + i;
    return wrong;
}

static const char *class_of(int code) {
    int class;
    MPI_Error_class(code, &class);
    return class == MPI_ERR_IO ? "MPI_ERR_IO" : class == MPI_SUCCESS ? "MPI_SUCCESS" : "another";
}

int main(int argc, char **argv) {
    char name[] = "/tmp/file-later-XXXXXX";
    short out[EACH], in[EACH], more[EACH];
    int wrong = 0, flag = 0, none, got[3];
    MPI_File file;
    MPI_Status status, statuses[2];
    MPI_Request request, requests[2];
    MPI_Offset length;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) close(mkstemp(name));
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 0, MPI_SHORT, MPI_SHORT, "native", MPI_INFO_NULL);
    for (int i = 0; i < EACH; i++) out[i] = rank * EACH + i;

    MPI_File_iwrite_at(file, rank * EACH, out, EACH, MPI_SHORT, &request);
    MPI_Wait(&request, &status);
    wrong += count_of(&status) != EACH || request != MPI_REQUEST_NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_size(file, &length);
    MPI_File_iread_at(file, rank * EACH, in, EACH, MPI_SHORT, &requests[0]);
    MPI_File_iread(file, more, EACH, MPI_SHORT, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    wrong += differ(in, rank * EACH) + differ(more, 0) + (count_of(&statuses[1]) != EACH);
    sum(&wrong);
    if (rank == 0) printf("requests: %d bytes written, %d wrong\n", (int)length, wrong);

    MPI_File_seek(file, -4, MPI_SEEK_END);
    MPI_File_iread(file, in, EACH, MPI_SHORT, &request);
    while (!flag) MPI_Test(&request, &flag, &status);
    got[0] = count_of(&status);
    MPI_File_read_at(file, size * EACH - 1, in, EACH, MPI_SHORT, &status);
    got[1] = count_of(&status);
    MPI_File_read_at(file, 1000, in, EACH, MPI_SHORT, &status);
    got[2] = count_of(&status);
    if (rank == 0) {
        printf("the end of the file: %d, %d and %d of 5 items\n", got[0], got[1], got[2]);
    }
    MPI_Barrier(MPI_COMM_WORLD);

    /* Backwards by rank; then through the individual pointers, which follow each other. */
    wrong = 0;
    int other = size - 1 - rank;
    for (int i = 0; i < EACH; i++) out[i] = 100 + other * EACH + i;
    MPI_File_iwrite_at_all(file, other * EACH, out, EACH, MPI_SHORT, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_iread_all(file, in, EACH, MPI_SHORT, &requests[0]);
    MPI_File_iread_all(file, more, EACH, MPI_SHORT, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    wrong += differ(in, 100) + differ(more, 100 + EACH);
    sum(&wrong);
    if (rank == 0) printf("collective requests: %d wrong\n", wrong);

    wrong = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < EACH; i++) out[i] = 200 + rank * EACH + i;
    MPI_File_write_at_all_begin(file, rank * EACH, out, EACH, MPI_SHORT);
    MPI_File_write_at_all_end(file, out, &status);
    wrong += count_of(&status) != EACH;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek(file, EACH, MPI_SEEK_SET);
    MPI_File_read_all_begin(file, in, EACH, MPI_SHORT);
    MPI_File_read_all_end(file, in, &status);
    wrong += differ(in, 200 + EACH) + (count_of(&status) != EACH);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_read_ordered_begin(file, in, EACH, MPI_SHORT);
    MPI_File_read_ordered_end(file, in, &status);
    wrong += differ(in, 200 + rank * EACH);
    sum(&wrong);
    if (rank == 0) printf("split collectives: %d wrong\n", wrong);

    MPI_File_read_all_begin(file, in, EACH, MPI_SHORT);
    int second = MPI_File_read_all_begin(file, in, EACH, MPI_SHORT);
    MPI_File_read_all_end(file, in, &status);
    none = MPI_File_read_all_end(file, in, &status);
    if (rank == 0) {
        printf("one at a time: %s; none was begun: %s\n", class_of(second), class_of(none));
    }
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
