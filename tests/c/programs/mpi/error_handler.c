/* A program's own error handler, error classes and texts; a copy of a communicator inherits them.
 * A handler that changes its code decides what the failed call returns.
 *
 * ranks: 2
 * expected:
 *   handler called with MPI_ERR_RANK
 *   handler called with MPI_ERR_TAG
 *   handler called with ours
 *   3 calls, and the program went on
 *   own class: the reactor is too hot
 *   returned after changes: 0 0 7 0
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

static void forgive(MPI_Comm *comm, int *code, ...) { *code = comm ? MPI_SUCCESS : *code; }

static void forgive_file(MPI_File *file, int *code, ...) { *code = file ? MPI_SUCCESS : *code; }

static void set_7(MPI_Win *window, int *code, ...) { *code = window ? 7 : *code; }

static void forgive_session(MPI_Session *session, int *code, ...) { *code = session ? MPI_SUCCESS : *code; }

/* What calls return whose handlers change the code. */
static void change(void) {
    MPI_Errhandler handlers[4];
    MPI_Comm copy;
    MPI_File file;
    MPI_Win window;
    MPI_Session session;
    MPI_Group group;
    int got[4];
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, copy, &window);
    MPI_Comm_create_errhandler(forgive, &handlers[0]);
    MPI_File_create_errhandler(forgive_file, &handlers[1]);
    MPI_Win_create_errhandler(set_7, &handlers[2]);
    MPI_Session_create_errhandler(forgive_session, &handlers[3]);
    MPI_Session_init(MPI_INFO_NULL, handlers[3], &session);
    MPI_Comm_set_errhandler(copy, handlers[0]);
    MPI_File_set_errhandler(MPI_FILE_NULL, handlers[1]);
    MPI_Win_set_errhandler(window, handlers[2]);
    got[0] = MPI_Send(got, 1, MPI_INT, 99, 0, copy);
    got[1] = MPI_File_open(copy, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    got[2] = MPI_Win_fence(-1, window);
    got[3] = MPI_Group_from_session_pset(session, "none", &group);
    if (rank == 0) printf("returned after changes: %d %d %d %d\n", got[0], got[1], got[2], got[3]);
    for (int i = 0; i < 4; i++) MPI_Errhandler_free(&handlers[i]);
    MPI_Session_finalize(&session);
    MPI_Win_free(&window);
    MPI_Comm_free(&copy);
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
    change();
    MPI_Finalize();
    return 0;
}
