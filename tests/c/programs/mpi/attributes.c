/* Attributes of communicators: copied when one is duplicated, deleted when it is freed.
 *
 * ranks: 2
 * expected:
 *   predefined: tags up to at least 32767
 *   before: not set
 *   original 10
 *   copy 11
 *   not copied by split: yes
 *   the type's attribute: 5
 *   deleted: copy 11, original 10, type 5
 *   name: my world
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static char deleted[64];
static int length;

static int copy_count(MPI_Comm old, int key, void *extra, void *in, void *out, int *flag) {
    (void)old, (void)key, (void)extra;
    int *count = malloc(sizeof *count);
    *count = *(int *)in + 1;
    *(void **)out = count;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_count(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key;
    int count = *(int *)value;
    length += sprintf(deleted + length, "%s %d, ", count == 10 ? (char *)extra : "copy", count);
    free(value);
    return MPI_SUCCESS;
}

static int delete_of_type(MPI_Datatype type, int key, void *value, void *extra) {
    (void)type, (void)key, (void)extra;
    length += sprintf(deleted + length, "type %d", *(int *)value);
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    int rank, key, type_key, flag, five = 5, *value, *tags;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Comm world, copy, part;
    MPI_Datatype type;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tags, &flag);
    if (rank == 0 && flag && *tags >= 32767) printf("predefined: tags up to at least 32767\n");
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_create_keyval(copy_count, delete_count, &key, "original");
    MPI_Comm_get_attr(world, key, &value, &flag);
    if (rank == 0) printf("before: %s\n", flag ? "set" : "not set");
    value = malloc(sizeof *value);
    *value = 10;
    MPI_Comm_set_attr(world, key, value);
    MPI_Comm_dup(world, &copy);
    MPI_Comm_get_attr(world, key, &value, &flag);
    if (rank == 0 && flag) printf("original %d\n", *value);
    MPI_Comm_get_attr(copy, key, &value, &flag);
    if (rank == 0 && flag) printf("copy %d\n", *value);
    MPI_Comm_split(world, 0, 0, &part);
    MPI_Comm_get_attr(part, key, &value, &flag);
    if (rank == 0) printf("not copied by split: %s\n", flag ? "no" : "yes");
    MPI_Comm_free(&part);
    MPI_Comm_free(&copy);
    MPI_Comm_delete_attr(world, key);
    MPI_Comm_free_keyval(&key);
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_of_type, &type_key, NULL);
    MPI_Type_set_attr(type, type_key, &five);
    MPI_Type_get_attr(type, type_key, &value, &flag);
    if (rank == 0 && flag) printf("the type's attribute: %d\n", *value);
    MPI_Type_free(&type);
    MPI_Type_free_keyval(&type_key);
    MPI_Comm_set_name(world, "my world");
    MPI_Comm_get_name(world, name, &length);
    if (rank == 0) printf("deleted: %s\nname: %s\n", deleted, name);
    MPI_Comm_free(&world);
    MPI_Finalize();
    return key == MPI_KEYVAL_INVALID ? 0 : 1;
}
