/* A communicator has a buffer of its own for buffered sends; the process's serves those without.
 *
 * ranks: 2
 * expected:
 *   8 messages through three buffers
 *   the other's buffer is too small: yes
 */
#include "../checks/check.h"

static char large[4000], small[2 * MPI_BSEND_OVERHEAD + 16], of_self[1000];

int main(int argc, char **argv) {
    MPI_Comm own;
    MPI_Request request;
    void *at;
    int length, value = 0, status = MPI_SUCCESS;
    double much[100] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size == 2);
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    MPI_Buffer_attach(large, sizeof large);
    MPI_Comm_attach_buffer(own, small, sizeof small);
    MPI_Comm_attach_buffer(MPI_COMM_SELF, of_self, sizeof of_self);
    if (rank == 0) {
        for (int n = 0; n < 4; n++) MPI_Bsend(&n, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        for (int n = 0; n < 4; n++) {
            MPI_Bsend(&n, 1, MPI_INT, 1, 0, own);
            MPI_Comm_flush_buffer(own);
        }
        MPI_Comm_iflush_buffer(own, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Bsend(much, 100, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD); /* there is room for it */
        status = MPI_Bsend(much, 100, MPI_DOUBLE, 1, 1, own);
    } else {
        for (int n = 0; n < 8; n++) {
            MPI_Recv(&value, 1, MPI_INT, 0, 0, n < 4 ? MPI_COMM_WORLD : own, MPI_STATUS_IGNORE);
            CHECK(value == n % 4);
        }
        MPI_Recv(much, 100, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Comm_detach_buffer(MPI_COMM_SELF, &at, &length);
    CHECK(at == of_self && length == sizeof of_self);
    MPI_Comm_detach_buffer(own, &at, &length);
    CHECK(at == small && length == sizeof small);
    MPI_Buffer_detach(&at, &length);
    CHECK(at == large && length == sizeof large);
    if (rank == 0) {
        printf("8 messages through three buffers\n");
        printf("the other's buffer is too small: %s\n", status == MPI_SUCCESS ? "no" : "yes");
    }
    MPI_Comm_free(&own);
    MPI_Finalize();
    return 0;
}
