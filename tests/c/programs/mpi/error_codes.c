/* Wrong arguments give error codes once MPI_ERRORS_RETURN is set, and the program goes on.
 *
 * ranks: 2
 * expected:
 *   rank 99: MPI_ERR_RANK
 *   negative count: MPI_ERR_COUNT
 *   tag too small: MPI_ERR_TAG
 *   no communicator: MPI_ERR_COMM
 *   no type: MPI_ERR_TYPE
 *   wrong root: MPI_ERR_ROOT
 *   every class has a text: yes
 *   still works: 1
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank;

static void show(const char *what, int code, int expected, const char *name) {
    int class;
    MPI_Error_class(code, &class);
    if (rank == 0) printf("%s: %s\n", what, class == expected ? name : "another class");
}
#define SHOW(what, code, class) show(what, code, class, #class)

int main(int argc, char **argv) {
    int size, value = 0, length, all = 1;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Errhandler handler;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    if (handler != MPI_ERRORS_ARE_FATAL) return 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    SHOW("rank 99", MPI_Send(&value, 1, MPI_INT, 99, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
    SHOW("negative count", MPI_Send(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
    SHOW("tag too small", MPI_Send(&value, 1, MPI_INT, 0, -7, MPI_COMM_WORLD), MPI_ERR_TAG);
    SHOW("no communicator", MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM);
    SHOW("no type", MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    SHOW("wrong root", MPI_Bcast(&value, 1, MPI_INT, size, MPI_COMM_WORLD), MPI_ERR_ROOT);
    for (int class = MPI_SUCCESS; class <= MPI_ERR_OTHER; class++) {
        text[0] = 0;
        all &= MPI_Error_string(class, text, &length) == MPI_SUCCESS && length > 0 && (int)strlen(text) == length;
    }
    MPI_Allreduce(&rank, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("every class has a text: %s\nstill works: %d\n", all ? "yes" : "no", value);
    MPI_Finalize();
    return 0;
}
