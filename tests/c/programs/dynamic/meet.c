/* meet server|client NAME [die]: two programs that were started apart meet at a published name. */
#include "../checks/check.h"
#include <string.h>

static int values[1 << 18], got[1 << 18];

/* Wait until somebody publishes it. */
static void look_up(const char *name, char *port) {
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    while (MPI_Lookup_name(name, MPI_INFO_NULL, port) != MPI_SUCCESS) continue;
}

/* A ring through all of both: what is large is copied from memory to memory. */
static void pass_on(MPI_Comm both, int is_server) {
    MPI_Comm all;
    int there, count;
    MPI_Intercomm_merge(both, !is_server, &all);
    MPI_Comm_rank(all, &there);
    MPI_Comm_size(all, &count);
    values[77] = there;
    MPI_Sendrecv(values, 1 << 18, MPI_INT, (there + 1) % count, 0, got, 1 << 18, MPI_INT,
                 (there + count - 1) % count, 0, all, MPI_STATUS_IGNORE);
    CHECK(got[77] == (there + count - 1) % count);
    if (there == count - 1) printf("%d processes have met\n", count);
    MPI_Comm_free(&all);
}

/* The server has ended, and what the client waits for will not come. */
static void outlive(MPI_Comm both) {
    char text[MPI_MAX_ERROR_STRING];
    int code, length;
    MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN);
    code = MPI_Recv(values, 1, MPI_INT, 0, 9, both, MPI_STATUS_IGNORE);
    MPI_Error_string(code, text, &length);
    printf("%s\n", text);
    MPI_Comm_free(&both);
}

int main(int argc, char **argv) {
    char port[MPI_MAX_PORT_NAME];
    int is_server = strcmp(argv[1], "server") == 0, dies = argc > 3;
    MPI_Comm both;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (is_server) {
        if (rank == 0) {
            MPI_Open_port(MPI_INFO_NULL, port);
            MPI_Publish_name(argv[2], MPI_INFO_NULL, port);
        }
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &both);
    } else {
        if (rank == 0) look_up(argv[2], port);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &both);
    }
    pass_on(both, is_server);
    if (dies && is_server) abort();
    if (dies) outlive(both);
    else MPI_Comm_disconnect(&both);
    if (is_server && rank == 0) {
        MPI_Unpublish_name(argv[2], MPI_INFO_NULL, port);
        MPI_Close_port(port);
    }
    MPI_Finalize();
    return 0;
}
