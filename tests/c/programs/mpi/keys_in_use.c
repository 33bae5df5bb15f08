/* Keys that are freed while values are set under them, functions that refuse, and codes of the
 * program's own.
 *
 * ranks: 1
 * expected:
 *   freed key: value 7 is there, deleted by handle, and gone
 *   freed thrice: deleted 2 values
 *   refused copy: error, and no communicator
 *   refused copy: error, and no datatype
 *   a code that was removed is used again: yes
 *   its text: out of paper
 *   a grid too large: error, and no communicator
 */
#include <mpi.h>
#include <stdio.h>

static int deleted;

static int refuse(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key, (void)extra, (void)in, (void)out, (void)flag;
    return MPI_ERR_OTHER;
}

static int free_again(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)value, (void)extra;
    deleted++;
    return MPI_Comm_free_keyval(&key);
}

static const char *error(int code) { return code == MPI_SUCCESS ? "no error" : "error"; }

int main(int argc, char **argv) {
    int key, copy, flag, value = 7, first, second, class, length;
    int *found;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Comm comm = MPI_COMM_SELF, other = MPI_COMM_WORLD;
    MPI_Datatype type, second_type = MPI_INT;
    MPI_Init(&argc, &argv);

    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    copy = key;
    MPI_Comm_set_attr(comm, key, &value);
    MPI_Comm_free_keyval(&key);
    MPI_Comm_get_attr(comm, copy, &found, &flag);
    printf("freed key: value %d is there, ", flag ? *found : -1);
    printf("deleted by handle%s", MPI_Comm_delete_attr(comm, copy) == MPI_SUCCESS ? ", " : "? ");
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    printf("%s\n", MPI_Comm_get_attr(comm, copy, &found, &flag) != MPI_SUCCESS ? "and gone" : "here");

    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, free_again, &key, NULL);
    copy = key;
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&key);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, copy);
    printf("freed thrice: deleted %d values\n", deleted);

    MPI_Comm_create_keyval(refuse, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &value);
    printf("refused copy: %s, and ", error(MPI_Comm_dup(MPI_COMM_SELF, &other)));
    printf("%s\n", other == MPI_COMM_NULL ? "no communicator" : "something");
    MPI_Comm_delete_attr(MPI_COMM_SELF, key);
    MPI_Comm_free_keyval(&key);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_create_keyval((MPI_Type_copy_attr_function *)refuse, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
    MPI_Type_set_attr(type, key, &value);
    printf("refused copy: %s, and ", error(MPI_Type_dup(type, &second_type)));
    printf("%s\n", second_type == MPI_DATATYPE_NULL ? "no datatype" : "something");
    MPI_Type_free(&type);
    MPI_Type_free_keyval(&key);

    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &first);
    MPI_Remove_error_code(first);
    MPI_Add_error_code(class, &second);
    printf("a code that was removed is used again: %s\n", first == second ? "yes" : "no");
    MPI_Add_error_string(second, "out of paper");
    MPI_Comm_call_errhandler(MPI_COMM_SELF, second);
    MPI_Error_string(second, text, &length);
    printf("its text: %s\n", text);

    int dims[2] = {5, 5}, periods[2] = {0, 0};
    other = MPI_COMM_WORLD;
    printf("a grid too large: %s, ", error(MPI_Cart_create(MPI_COMM_SELF, 2, dims, periods, 0, &other)));
    printf("and %s\n", other == MPI_COMM_NULL ? "no communicator" : "something");
    MPI_Finalize();
    return 0;
}
