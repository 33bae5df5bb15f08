/* The tool information interface: everything that is there is listed, and misuse gets its code.
 *
 * ranks: 2
 * order: any
 * expected:
 *   rank 0: 0 wrong
 *   rank 1: 0 wrong
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define MOST 512 /* characters of a name or a description */

static int wrong;

#define CHECK(truth)                                                                              \
    do {                                                                                          \
        if (!(truth)) {                                                                           \
            fprintf(stderr, "line %d: not %s\n", __LINE__, #truth);                               \
            wrong++;                                                                              \
        }                                                                                         \
    } while (0)

/* Lengths count the zero at the end, whether a text was cut or not. */
static void check_texts(int index) {
    char name[MOST], cut[4] = "???";
    int length = MOST, wanted = 0, room = 3;
    MPI_T_cvar_get_info(index, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    CHECK(length == (int)strlen(name) + 1);
    MPI_T_cvar_get_info(index, NULL, &wanted, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    CHECK(wanted == length);
    MPI_T_cvar_get_info(index, cut, &room, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    CHECK(room == length && strlen(cut) == 2 && strncmp(cut, name, 2) == 0);
}

static void list_control_variables(void) {
    int number, index, length, verbosity, bind, scope, described, count, items, value;
    char name[MOST], description[MOST];
    MPI_Datatype type;
    MPI_T_enum enumeration;
    MPI_T_cvar_handle handle;
    CHECK(MPI_T_cvar_get_num(&number) == MPI_SUCCESS && number > 0);
    for (int n = 0; n < number; n++) {
        length = described = MOST;
        CHECK(MPI_T_cvar_get_info(n, name, &length, &verbosity, &type, &enumeration, description,
                                  &described, &bind, &scope) == MPI_SUCCESS);
        CHECK(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS && index == n);
        CHECK(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL);
        CHECK(scope >= MPI_T_SCOPE_CONSTANT && scope <= MPI_T_SCOPE_ALL_EQ);
        if (enumeration != MPI_T_ENUM_NULL) {
            length = MOST;
            CHECK(MPI_T_enum_get_info(enumeration, &items, name, &length) == MPI_SUCCESS);
            for (int item = 0; item < items; item++) {
                length = MOST;
                CHECK(MPI_T_enum_get_item(enumeration, item, &value, name, &length) ==
                      MPI_SUCCESS);
                CHECK(length == (int)strlen(name) + 1);
            }
        }
        if (bind == MPI_T_BIND_NO_OBJECT) {
            char room[4096];
            CHECK(MPI_T_cvar_handle_alloc(n, NULL, &handle, &count) == MPI_SUCCESS);
            if (count <= 512)
                CHECK(MPI_T_cvar_read(handle, room) == MPI_SUCCESS);
            CHECK(MPI_T_cvar_handle_free(&handle) == MPI_SUCCESS);
            CHECK(handle == MPI_T_CVAR_HANDLE_NULL);
        }
        check_texts(n);
    }
    CHECK(MPI_T_cvar_get_info(number, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
          MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_cvar_get_index("there is no such variable", &index) == MPI_T_ERR_INVALID_NAME);
}

static void list_performance_variables(void) {
    int number, index, length, verbosity, kind, bind, readonly, continuous, atomic, described;
    char name[MOST], description[MOST];
    MPI_Datatype type;
    MPI_T_enum enumeration;
    MPI_T_pvar_session session, other;
    CHECK(MPI_T_pvar_session_create(&session) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_session_create(&other) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_get_num(&number) == MPI_SUCCESS);
    for (int n = 0; n < number; n++) {
        MPI_T_pvar_handle handle;
        int count, code;
        length = described = MOST;
        CHECK(MPI_T_pvar_get_info(n, name, &length, &verbosity, &kind, &type, &enumeration,
                                  description, &described, &bind, &readonly, &continuous,
                                  &atomic) == MPI_SUCCESS);
        CHECK(MPI_T_pvar_get_index(name, kind, &index) == MPI_SUCCESS && index == n);
        CHECK(kind >= MPI_T_PVAR_CLASS_STATE && kind <= MPI_T_PVAR_CLASS_GENERIC);
        if (bind != MPI_T_BIND_NO_OBJECT)
            continue;
        CHECK(MPI_T_pvar_handle_alloc(session, n, NULL, &handle, &count) == MPI_SUCCESS);
        code = MPI_T_pvar_start(session, handle);
        CHECK(code == (continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI_SUCCESS));
        code = MPI_T_pvar_reset(session, handle);
        CHECK(code == (readonly ? MPI_T_ERR_PVAR_NO_WRITE : MPI_SUCCESS));
        CHECK(MPI_T_pvar_handle_free(session, &handle) == MPI_SUCCESS);
        CHECK(handle == MPI_T_PVAR_HANDLE_NULL);
    }
    CHECK(MPI_T_pvar_get_index("there is no such variable", MPI_T_PVAR_CLASS_LEVEL, &index) ==
          MPI_T_ERR_INVALID_NAME);
    CHECK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_session_free(&session) == MPI_SUCCESS);
    CHECK(session == MPI_T_PVAR_SESSION_NULL);
    CHECK(MPI_T_pvar_session_free(&other) == MPI_SUCCESS);
}

static void list_categories(void) {
    int number, index, length, described, cvars, pvars, categories, events, before, after;
    char name[MOST], description[MOST];
    CHECK(MPI_T_category_changed(&before) == MPI_SUCCESS);
    CHECK(MPI_T_category_get_num(&number) == MPI_SUCCESS);
    for (int n = 0; n < number; n++) {
        int members[MOST];
        length = described = MOST;
        CHECK(MPI_T_category_get_info(n, name, &length, description, &described, &cvars, &pvars,
                                      &categories) == MPI_SUCCESS);
        CHECK(MPI_T_category_get_index(name, &index) == MPI_SUCCESS && index == n);
        CHECK(MPI_T_category_get_cvars(n, MOST, members) == MPI_SUCCESS);
        CHECK(MPI_T_category_get_pvars(n, MOST, members) == MPI_SUCCESS);
        CHECK(MPI_T_category_get_categories(n, MOST, members) == MPI_SUCCESS);
        CHECK(MPI_T_category_get_num_events(n, &events) == MPI_SUCCESS && events >= 0);
    }
    CHECK(MPI_T_category_changed(&after) == MPI_SUCCESS && after == before);
    CHECK(MPI_T_category_get_num_events(number, &events) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_source_get_num(&number) == MPI_SUCCESS);
    CHECK(MPI_T_event_get_num(&number) == MPI_SUCCESS);
}

int main(int argc, char **argv) {
    int rank, provided, number;
    CHECK(MPI_T_cvar_get_num(&number) == MPI_T_ERR_NOT_INITIALIZED);
    /* Before MPI_Init, and twice. */
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
    list_control_variables();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(MPI_T_finalize() == MPI_SUCCESS);
    list_control_variables();
    list_performance_variables();
    list_categories();
    printf("rank %d: %d wrong\n", rank, wrong);
    MPI_Finalize();
    /* After MPI_Finalize. */
    list_categories();
    CHECK(MPI_T_finalize() == MPI_SUCCESS);
    CHECK(MPI_T_cvar_get_num(&number) == MPI_T_ERR_NOT_INITIALIZED);
    return wrong != 0;
}
