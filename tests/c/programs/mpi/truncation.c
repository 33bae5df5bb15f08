/* A message that is longer than the receiver's buffer: an error, and nothing beyond is written.
 *
 * ranks: 2
 * expected:
 *   receive: MPI_ERR_TRUNCATE, the end is untouched
 *   irecv and wait: MPI_ERR_TRUNCATE, the end is untouched
 *   of two, one: MPI_ERR_IN_STATUS, MPI_ERR_TRUNCATE and 1 element
 *   a short message: 3 of 10 elements
 *   bytes that are no whole element: undefined
 */
#include <mpi.h>
#include <stdio.h>

static int class_of(int code) {
    int class;
    MPI_Error_class(code, &class);
    return class;
}

int main(int argc, char **argv) {
    int rank, numbers[10] = {0}, count;
    MPI_Request requests[2];
    MPI_Status status, statuses[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 1) {
        MPI_Send(numbers, 10, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Send(numbers, 10, MPI_INT, 0, 1, MPI_COMM_WORLD);
        MPI_Send(numbers, 10, MPI_INT, 0, 2, MPI_COMM_WORLD);
        MPI_Send(numbers, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
        MPI_Send(numbers, 3, MPI_INT, 0, 4, MPI_COMM_WORLD);
        MPI_Send(numbers, 7, MPI_BYTE, 0, 5, MPI_COMM_WORLD);
    } else {
        for (int i = 0; i < 10; i++) numbers[i] = 77;
        int code = MPI_Recv(numbers, 5, MPI_INT, 1, 0, MPI_COMM_WORLD, &status);
        printf("receive: %s, the end is %s\n", class_of(code) == MPI_ERR_TRUNCATE ? "MPI_ERR_TRUNCATE" : "?",
               numbers[5] == 77 && numbers[9] == 77 ? "untouched" : "overwritten");
        MPI_Irecv(numbers, 5, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[0]);
        code = MPI_Wait(&requests[0], &status);
        printf("irecv and wait: %s, the end is %s\n", class_of(code) == MPI_ERR_TRUNCATE ? "MPI_ERR_TRUNCATE" : "?",
               numbers[5] == 77 && numbers[9] == 77 ? "untouched" : "overwritten");
        MPI_Irecv(numbers, 5, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(numbers + 5, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[1]);
        code = MPI_Waitall(2, requests, statuses);
        if (statuses[1].MPI_ERROR == MPI_ERR_PENDING) MPI_Wait(&requests[1], &statuses[1]);
        MPI_Get_count(&statuses[1], MPI_INT, &count);
        printf("of two, one: %s, %s and %d element\n", class_of(code) == MPI_ERR_IN_STATUS ? "MPI_ERR_IN_STATUS" : "?",
               class_of(statuses[0].MPI_ERROR) == MPI_ERR_TRUNCATE ? "MPI_ERR_TRUNCATE" : "?", count);
        MPI_Recv(numbers, 10, MPI_INT, 1, 4, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        printf("a short message: %d of 10 elements\n", count);
        MPI_Recv(numbers, 40, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        printf("bytes that are no whole element: %s\n", count == MPI_UNDEFINED ? "undefined" : "?");
    }
    MPI_Finalize();
    return 0;
}
