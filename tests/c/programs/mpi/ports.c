/* Two halves of a program meet at a port, by its published name, several times; two processes meet
 * at a socket.
 *
 * ranks: 4
 * expected:
 *   the name is published
 *   met 3 times: 1 and 3 processes
 *   the name is gone: yes
 *   the port is closed: yes
 *   two have met at a socket
 */
#include "../checks/check.h"
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void greet(MPI_Comm both) {
    int mine, far, sum, rank_here;
    MPI_Comm all;
    MPI_Comm_size(both, &mine);
    MPI_Comm_remote_size(both, &far);
    MPI_Intercomm_merge(both, rank > 0, &all);
    MPI_Comm_rank(all, &rank_here);
    MPI_Allreduce(&rank_here, &sum, 1, MPI_INT, MPI_SUM, all);
    CHECK(sum == (mine + far) * (mine + far - 1) / 2);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&both);
    CHECK(both == MPI_COMM_NULL);
}

/* A connection between ranks 0 and 1. */
static int connection(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int end = socket(AF_INET, SOCK_STREAM, 0), other;
    if (rank == 1) {
        MPI_Recv(&at, sizeof at, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(connect(end, (struct sockaddr *)&at, sizeof at) == 0);
        return end;
    }
    CHECK(bind(end, (struct sockaddr *)&at, sizeof at) == 0 && listen(end, 1) == 0);
    getsockname(end, (struct sockaddr *)&at, &length);
    MPI_Send(&at, sizeof at, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    other = accept(end, NULL, NULL);
    close(end);
    return other;
}

int main(int argc, char **argv) {
    char port[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME], name[40];
    MPI_Comm half, both;
    int status, class;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &half);
    status = getpid();
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "sfm-ports-%d", status);
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name(name, MPI_INFO_NULL, port);
        printf("the name is published\n");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Lookup_name(name, MPI_INFO_NULL, found);
        MPI_Send(found, (int)strlen(found) + 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        MPI_Recv(found, MPI_MAX_PORT_NAME, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(strcmp(port, found) == 0);
    }
    for (int n = 0; n < 3; n++) {
        if (rank == 0) MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &both);
        else MPI_Comm_connect(found, MPI_INFO_NULL, 0, half, &both);
        greet(both);
    }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0) {
        printf("met 3 times: 1 and %d processes\n", size - 1);
        MPI_Unpublish_name(name, MPI_INFO_NULL, port);
        MPI_Error_class(MPI_Lookup_name(name, MPI_INFO_NULL, found), &class);
        printf("the name is gone: %s\n", class == MPI_ERR_NAME ? "yes" : "no");
        MPI_Close_port(port);
        status = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &both);
        printf("the port is closed: %s\n", status == MPI_SUCCESS ? "no" : "yes");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank < 2) {
        int end = connection();
        MPI_Comm_join(end, &both);
        close(end);
        greet(both);
    }
    if (rank == 0) printf("two have met at a socket\n");
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
