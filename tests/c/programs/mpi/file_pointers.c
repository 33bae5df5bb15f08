/* The pointer that all processes share: records that each appends where nobody else does, in any
 * order or in that of the ranks, and a file that can only be written one after the other.
 *
 * ranks: 4
 * expected:
 *   200 records, each of them once
 *   the shared pointer is at 200
 *   read by all, each of them once
 *   ordered: 0 11 22 33 44 55 66 77 88 99
 *   ordered, read back: 0 wrong
 *   the shared pointer goes to 6, from there to 4, and to the end at 20
 *   sequential: abcd, and in a view from there on: efgh
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EACH = 50 };

static int rank, size;

/* Each number from 0 to `count` - 1 is there once. */
static int is_all(const int *numbers, int count) {
    char seen[1000] = {0};
    for (int i = 0; i < count; i++) {
        if (numbers[i] < 0 || numbers[i] >= count || seen[numbers[i]]++) return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    char name[] = "/tmp/file-pointers-XXXXXX";
    int numbers[1000], own[EACH], got, wrong = 0;
    MPI_File file;
    MPI_Status status;
    MPI_Offset position, places[3];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) close(mkstemp(name));
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);

    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    for (int i = 0; i < EACH; i++) {
        int number = rank * EACH + i;
        MPI_File_write_shared(file, &number, 1, MPI_INT, &status);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at_all(file, 0, numbers, 1000, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &got);
    MPI_File_get_position_shared(file, &position);
    if (rank == 0) {
        printf("%d records, %s\n", got, is_all(numbers, got) ? "each of them once" : "not all");
        printf("the shared pointer is at %d\n", (int)position);
    }
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_Request requests[EACH];
    for (int i = 0; i < EACH; i++) MPI_File_iread_shared(file, &own[i], 1, MPI_INT, &requests[i]);
    MPI_Waitall(EACH, requests, MPI_STATUSES_IGNORE);
    MPI_Gather(own, EACH, MPI_INT, numbers, EACH, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("read by all, %s\n", is_all(numbers, size * EACH) ? "each of them once" : "not all");
    }
    MPI_File_close(&file);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);

    /* Each writes as many numbers as its rank is, and one more. */
    MPI_File_set_size(file, 0);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    int before = rank * (rank + 1) / 2;
    for (int i = 0; i <= rank; i++) own[i] = 11 * (before + i);
    MPI_File_write_ordered(file, own, rank + 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_write_ordered(file, own, rank + 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at_all(file, 0, numbers, 10, MPI_INT, MPI_STATUS_IGNORE);
    if (rank == 0) {
        printf("ordered:");
        for (int i = 0; i < 10; i++) printf(" %d", numbers[i]);
        printf("\n");
    }
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    for (int i = 0; i < EACH; i++) own[i] = -1;
    MPI_File_read_ordered(file, own, rank + 1, MPI_INT, MPI_STATUS_IGNORE);
    for (int i = 0; i <= rank; i++) wrong += own[i] != 11 * (before + i);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("ordered, read back: %d wrong\n", wrong);

    MPI_File_seek_shared(file, 6, MPI_SEEK_SET);
    MPI_File_get_position_shared(file, &places[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(file, -2, MPI_SEEK_CUR);
    MPI_File_get_position_shared(file, &places[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(file, 0, MPI_SEEK_END);
    MPI_File_get_position_shared(file, &places[2]);
    if (rank == 0) {
        printf("the shared pointer goes to %d, from there to %d, and to the end at %d\n",
               (int)places[0], (int)places[1], (int)places[2]);
    }
    MPI_File_close(&file);

    char letter = 'a' + rank, text[9] = "";
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL,
                  MPI_INFO_NULL, &file);
    MPI_File_write_ordered(file, &letter, 1, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL);
    letter += 4;
    MPI_File_write_ordered(file, &letter, 1, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_read_at_all(file, 0, text, 8, MPI_CHAR, MPI_STATUS_IGNORE);
    if (rank == 0) {
        printf("sequential: %.4s, and in a view from there on: %s\n", text, text + 4);
    }
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
