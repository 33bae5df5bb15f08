/* A program's own error handler, error classes and texts; a copy of a communicator inherits them.
 *
 * ranks: 2
 * expected:
 *   handler called with MPI_ERR_RANK
 *   handler called with MPI_ERR_TAG
 *   handler called with ours
 *   3 calls, and the program went on
 *   own class: the reactor is too hot
 */
#include <mpi.h>
#include <stdio.h>

static int rank, calls, hot;

static void handle(MPI_Comm *comm, int *code, ...) {
    int class, size;
    MPI_Comm_size(*comm, &size);
    MPI_Error_class(*code, &class);
    const char *name = class == MPI_ERR_RANK ? "MPI_ERR_RANK" : class == MPI_ERR_TAG ? "MPI_ERR_TAG"
                     : class == hot ? "ours" : "another class";
    calls++;
    if (rank == 0 && size == 2) printf("handler called with %s\n", name);
}

int main(int argc, char **argv) {
    int value = 0, code, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Errhandler handler;
    MPI_Comm world, copy;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(world, handler);
    MPI_Errhandler_free(&handler);
    MPI_Add_error_class(&hot);
    MPI_Add_error_code(hot, &code);
    MPI_Add_error_string(code, "the reactor is too hot");
    MPI_Send(&value, 1, MPI_INT, -55, 0, world);
    MPI_Comm_dup(world, &copy);
    MPI_Recv(&value, 1, MPI_INT, 0, -55, copy, MPI_STATUS_IGNORE);
    MPI_Comm_call_errhandler(world, code);
    MPI_Error_string(code, text, &length);
    if (rank == 0) printf("%d calls, and the program went on\nown class: %s\n", calls, text);
    MPI_Comm_free(&copy), MPI_Comm_free(&world);
    MPI_Finalize();
    return 0;
}
