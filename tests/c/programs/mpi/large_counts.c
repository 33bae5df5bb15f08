/* Counts of 64 bits: datatypes that were made with them say them again, operations are called with
 * them, and what no memory can have is refused.
 *
 * ranks: 2
 * expected:
 *   contiguous: integers addresses large 3000000000 types 1
 *   vector: integers addresses large 2 1 3000000000 types 1
 *   hvector: integers addresses large 2 1 3000000000 types 1
 *   indexed: integers addresses large 2 1 2 0 3000000000 types 1
 *   hindexed: integers addresses large 2 1 2 0 3000000000 types 1
 *   indexed block: integers addresses large 2 1 0 3000000000 types 1
 *   hindexed block: integers addresses large 2 1 0 3000000000 types 1
 *   struct: integers addresses large 2 1 2 0 3000000000 types 2
 *   subarray: integers 2 56 addresses large 2 3000000000 1 7 1 0 types 1
 *   darray: integers 2 1 2 123 121 -49767 -49767 1 2 56 addresses large 2 3000000000 types 1
 *   resized: integers addresses large -8 3000000000 types 1
 *   small: integers 2 1 addresses 24 large types 1
 *   asked without large counts: refused refused
 *   12000000000 bytes of MPI_INT: as an int undefined, as a count 3000000000
 *   of a struct: elements 6000000000, items 3000000000
 *   a receive of up to 3000000000 items took 2
 *   operation of large counts: 11 22 33, called with 3 items
 *   more bytes than memory can have: refused refused refused refused
 */
#include <mpi.h>
#include <stdio.h>

static MPI_Comm world = MPI_COMM_WORLD;
static const MPI_Count LARGE = 3000000000;
static int rank;

static void tell(const char *what, MPI_Datatype type) {
    MPI_Count integers, addresses, larges, types;
    int combiner, some[16];
    MPI_Aint places[4];
    MPI_Count counts[8];
    MPI_Datatype made_of[2];
    MPI_Type_get_envelope_c(type, &integers, &addresses, &larges, &types, &combiner);
    MPI_Type_get_contents_c(type, integers, addresses, larges, types, some, places, counts, made_of);
    printf("%s: integers", what);
    for (int i = 0; i < integers; i++) printf(" %d", some[i]);
    printf(" addresses");
    for (int i = 0; i < addresses; i++) printf(" %ld", (long)places[i]);
    printf(" large");
    for (int i = 0; i < larges; i++) printf(" %lld", (long long)counts[i]);
    printf(" types %d\n", (int)types);
}

static const char *word(int code) { return code == MPI_SUCCESS ? "done" : "refused"; }

static void types(void) {
    MPI_Count lengths[] = {1, 2}, places[] = {0, LARGE};
    MPI_Datatype type, two[] = {MPI_CHAR, MPI_INT};
    int kinds[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK}, grid[] = {1, 2};
    int cuts[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    MPI_Type_contiguous_c(LARGE, MPI_CHAR, &type), tell("contiguous", type), MPI_Type_free(&type);
    MPI_Type_vector_c(2, 1, LARGE, MPI_CHAR, &type), tell("vector", type), MPI_Type_free(&type);
    MPI_Type_create_hvector_c(2, 1, LARGE, MPI_INT, &type);
    tell("hvector", type), MPI_Type_free(&type);
    MPI_Type_indexed_c(2, lengths, places, MPI_CHAR, &type);
    tell("indexed", type), MPI_Type_free(&type);
    MPI_Type_create_hindexed_c(2, lengths, places, MPI_INT, &type);
    tell("hindexed", type), MPI_Type_free(&type);
    MPI_Type_create_indexed_block_c(2, 1, places, MPI_CHAR, &type);
    tell("indexed block", type), MPI_Type_free(&type);
    MPI_Type_create_hindexed_block_c(2, 1, places, MPI_INT, &type);
    tell("hindexed block", type), MPI_Type_free(&type);
    MPI_Type_create_struct_c(2, lengths, places, two, &type);
    tell("struct", type), MPI_Type_free(&type);
    MPI_Count sizes[] = {2, LARGE}, parts[] = {1, 7}, starts[] = {1, 0};
    MPI_Type_create_subarray_c(2, sizes, parts, starts, MPI_ORDER_C, MPI_CHAR, &type);
    tell("subarray", type), MPI_Type_free(&type);
    MPI_Type_create_darray_c(2, 1, 2, sizes, kinds, cuts, grid, MPI_ORDER_C, MPI_CHAR, &type);
    tell("darray", type), MPI_Type_free(&type);
    MPI_Type_create_resized_c(MPI_INT, -8, LARGE, &type);
    tell("resized", type);
    int numbers[4], combiner;
    MPI_Aint addresses[4];
    int first = MPI_Type_get_envelope(type, numbers, numbers, numbers, &combiner);
    int second = MPI_Type_get_contents(type, 4, 4, 1, numbers, addresses, two);
    MPI_Type_free(&type);
    MPI_Type_create_hvector(2, 1, 24, MPI_INT, &type), tell("small", type), MPI_Type_free(&type);
    printf("asked without large counts: %s %s\n", word(first), word(second));
}

static void statuses(void) {
    MPI_Status status;
    MPI_Count many, elements;
    MPI_Datatype pair;
    int few;
    MPI_Status_set_elements_c(&status, MPI_INT, LARGE);
    MPI_Get_count(&status, MPI_INT, &few);
    MPI_Get_count_c(&status, MPI_INT, &many);
    printf("%lld bytes of MPI_INT: as an int %s, as a count %lld\n", (long long)LARGE * 4,
           few == MPI_UNDEFINED ? "undefined" : "something", (long long)many);
    int lengths[] = {1, 1};
    MPI_Aint places[] = {0, 8};
    MPI_Datatype of[] = {MPI_CHAR, MPI_DOUBLE};
    MPI_Type_create_struct(2, lengths, places, of, &pair);
    MPI_Type_commit(&pair);
    MPI_Status_set_elements_x(&status, pair, 2 * LARGE);
    MPI_Get_elements_c(&status, pair, &elements);
    MPI_Get_count_c(&status, pair, &many);
    printf("of a struct: elements %lld, items %lld\n", (long long)elements, (long long)many);
    MPI_Type_free(&pair);
}

/* There is room for many items, all in the same place. */
static void message(void) {
    int number = 7, other = 8;
    MPI_Datatype same;
    MPI_Status status;
    MPI_Count count;
    MPI_Type_create_resized(MPI_INT, 0, 0, &same);
    MPI_Type_commit(&same);
    if (rank == 0) {
        MPI_Send_c((int[]){number, other}, 2, MPI_INT, 1, 0, world);
    } else {
        MPI_Recv_c(&number, LARGE, same, 0, 0, world, &status);
        MPI_Get_count_c(&status, same, &count);
        printf("a receive of up to %lld items took %d\n", (long long)LARGE,
               number == other ? (int)count : -1);
    }
    MPI_Type_free(&same);
}

static MPI_Count called;

static void add(void *from, void *into, MPI_Count *count, MPI_Datatype *type) {
    int *left = from, *right = into;
    if (*type != MPI_INT) return;
    for (MPI_Count i = 0; i < *count; i++) right[i] += left[i];
    called = *count;
}

static void operation(void) {
    MPI_Op op;
    int own[] = {1, 2, 3}, all[3] = {0};
    for (int i = 0; rank == 1 && i < 3; i++) own[i] *= 10;
    MPI_Op_create_c(add, 1, &op);
    MPI_Reduce_c(own, all, 3, MPI_INT, op, 1, world);
    if (rank == 1)
        printf("operation of large counts: %d %d %d, called with %lld items\n", all[0], all[1],
               all[2], (long long)called);
    MPI_Op_free(&op);
}

static void too_many(void) {
    MPI_Count much = (MPI_Count)1 << 61, size;
    MPI_Datatype type;
    int number = 0;
    printf("more bytes than memory can have: %s ", word(MPI_Type_contiguous_c(much, MPI_INT, &type)));
    printf("%s ", word(MPI_Type_vector_c(2, 1, much, MPI_INT, &type)));
    printf("%s ", word(MPI_Pack_size_c(much, MPI_INT, world, &size)));
    printf("%s\n", word(MPI_Send_c(&number, much, MPI_INT, 0, 0, world)));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (rank == 1) types(), statuses();
    message();
    operation();
    if (rank == 1) too_many();
    MPI_Finalize();
    return 0;
}
