/* Sessions: without MPI_Init, several times, beside MPI_COMM_WORLD, and after MPI_Finalize.
 *
 * ranks: 3
 * expected:
 *   sets: mpi://WORLD mpi://SELF
 *   MPI_THREAD_FUNNELED: MPI_THREAD_FUNNELED
 *   many: refused
 *   before MPI_Init: 3 processes, sum 3
 *   once more: 3 processes, sum 3
 *   beside MPI_COMM_WORLD: 3 processes, sum 3
 *   over MPI_Finalize: 3 processes, sum 3
 *   after it: 3 processes, sum 3
 *   errors heard: 1
 */
#include "../checks/check.h"
#include <string.h>

static int heard;

static void hear(MPI_Session *session, int *code, ...) {
    int class;
    MPI_Error_class(*code, &class);
    heard += *session != MPI_SESSION_NULL && class == MPI_ERR_ARG;
}

/* All processes of a session, in a communicator. */
static MPI_Comm everybody(MPI_Session session, const char *tag) {
    MPI_Group group;
    MPI_Comm comm;
    CHECK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group) == MPI_SUCCESS);
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Group_free(&group);
    return comm;
}

/* Two halves of them. */
static void part(MPI_Session session, const char *tag) {
    MPI_Group all, half, other;
    MPI_Comm both;
    int mine, far, range[1][3] = {{rank < size / 2 ? 0 : size / 2, rank < size / 2 ? size / 2 - 1 : size - 1, 1}};
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    MPI_Group_range_incl(all, 1, range, &half);
    MPI_Group_difference(all, half, &other);
    MPI_Intercomm_create_from_groups(half, 0, other, 0, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &both);
    MPI_Comm_size(both, &mine);
    MPI_Comm_remote_size(both, &far);
    CHECK(mine + far == size);
    MPI_Comm_free(&both);
    MPI_Group_free(&all);
    MPI_Group_free(&half);
    MPI_Group_free(&other);
}

/* Use a session: collectives, buffered sends, communicators. */
static void use(MPI_Session session, const char *when, const char *tag) {
    MPI_Comm comm = everybody(session, tag);
    char buffer[1000];
    void *back;
    int sum, length, left, got;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    left = (rank + size - 1) % size;
    MPI_Session_attach_buffer(session, buffer, sizeof buffer);
    MPI_Bsend(&rank, 1, MPI_INT, (rank + 1) % size, 4, comm);
    MPI_Recv(&got, 1, MPI_INT, left, 4, comm, MPI_STATUS_IGNORE);
    MPI_Session_detach_buffer(session, &back, &length);
    CHECK(got == left && back == buffer && length == sizeof buffer);
    part(session, tag);
    if (rank == 0) {
        printf("%s: %d processes, sum %d\n", when, size, sum);
        fflush(stdout);
    }
    MPI_Comm_free(&comm);
}

static MPI_Session begin(void) {
    MPI_Session session;
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
    return session;
}

static void once(const char *when, const char *tag) {
    MPI_Session session = begin();
    use(session, when, tag);
    MPI_Session_finalize(&session);
    CHECK(session == MPI_SESSION_NULL);
}

/* Ask a session about itself. */
static void ask(void) {
    MPI_Session session = begin();
    MPI_Errhandler handler;
    MPI_Comm comm;
    MPI_Info info;
    int sets, flag, length = 0;
    char name[2][20], value[20];
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets);
    CHECK(sets >= 2);
    for (int n = 0; n < 2; n++) {
        length = 0;
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, name[n]);
        CHECK(length == (int)strlen(n ? "mpi://SELF" : "mpi://WORLD") + 1);
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, name[n]);
    }
    MPI_Session_get_pset_info(session, "MPI://self", &info); /* a URI: any case of letters */
    MPI_Info_get(info, "mpi_size", 19, value, &flag);
    CHECK(flag && strcmp(value, "1") == 0);
    MPI_Info_free(&info);
    comm = everybody(session, "ask");
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_free(&comm);
    if (rank == 0) printf("sets: %s %s\n", name[0], name[1]);
    MPI_Session_create_errhandler(hear, &handler);
    MPI_Session_set_errhandler(session, handler);
    MPI_Errhandler_free(&handler);
    MPI_Session_call_errhandler(session, MPI_ERR_ARG);
    MPI_Session_finalize(&session);
}

/* The level that a session gets for one that is asked for; other hints are not returned. */
static void level(const char *asked) {
    MPI_Session session;
    MPI_Info info, used;
    char value[40];
    int flag;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", asked);
    MPI_Info_set(info, "no_such_hint", "1");
    if (MPI_Session_init(info, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS) {
        MPI_Session_get_info(session, &used);
        MPI_Info_get(used, "no_such_hint", 39, value, &flag);
        CHECK(!flag);
        MPI_Info_get(used, "thread_level", 39, value, &flag);
        MPI_Info_free(&used);
        MPI_Session_finalize(&session);
    } else {
        strcpy(value, "refused");
    }
    if (rank == 0) printf("%s: %s\n", asked, value);
    MPI_Info_free(&info);
}

int main(int argc, char **argv) {
    MPI_Session long_one;
    ask();
    level("MPI_THREAD_FUNNELED");
    level("many");
    once("before MPI_Init", "a");
    once("once more", "a");
    MPI_Init(&argc, &argv);
    once("beside MPI_COMM_WORLD", "b");
    long_one = begin();
    MPI_Finalize();
    use(long_one, "over MPI_Finalize", "c");
    MPI_Session_finalize(&long_one);
    once("after it", "d");
    if (rank == 0) printf("errors heard: %d\n", heard);
    return 0;
}
