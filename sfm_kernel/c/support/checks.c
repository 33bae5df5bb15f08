/* Support for compiled programs: checks that report the source line, and output line by line.
 *
 * The program calls the __ubsan_handle_* functions if an index is out of bounds, a pointer is null,
 * or a divisor is zero. The compiler's library of these functions may not be installed, and has no
 * connection to the launcher; these few lines are always present. They print the error and its code
 * location, and end the process, whose state can no longer be trusted. The names and arguments are
 * those that GCC's and Clang's instrumentation uses.
 *
 * With --asan the program is linked with AddressSanitizer, which finds accesses outside of allocated
 * memory, of variables, and of memory that was freed, also those of functions that the program
 * calls. Its report of a page becomes one sentence here, too.
 *
 * If the launcher has started the process (SFM_MPI_REPORTS), it gets the report: it then ends the
 * other ranks, and shows the message once.
 */
#define _GNU_SOURCE
#include <execinfo.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct location {
    const char *file;
    uint32_t line, column;
};

struct type {
    uint16_t kind;  /* 0: an integer */
    uint16_t about; /* integer: bit 0 means signed, the others are the logarithm of its bits */
    char name[];
};

enum { STATUS = 134 }; /* as after abort() */

static void put_json(char *text, size_t size, const char *from)
{
    size_t at = strlen(text);
    for (; *from && at + 8 < size; from++) {
        unsigned char byte = (unsigned char)*from;
        if (byte == '"' || byte == '\\')
            text[at++] = '\\';
        if (byte < ' ')
            at += (size_t)sprintf(text + at, "\\u%04x", byte);
        else
            text[at++] = *from;
    }
    text[at] = 0;
}

static int report_to_launcher(const char *message)
{
    static char report[2048];
    const char *given = getenv("SFM_MPI_REPORTS");
    if (!given || !*given)
        return 0;
    snprintf(report, sizeof report, "[\"checked\", %d, \"", STATUS);
    put_json(report, sizeof report - 4, message);
    strcat(report, "\"]");
    return send(atoi(given), report, strlen(report), MSG_NOSIGNAL) > 0;
}

/* "cell" is the cell that runs now: its number is not compiled in, so that running it again
 * compiles nothing. */
static void put_location(char *text, size_t size, const struct location *at)
{
    const char *cell = getenv("SFM_CELL");
    if (strcmp(at->file, "cell") == 0 && cell)
        snprintf(text, size, "cell %.*s, line %u", (int)strcspn(cell, "\t"), cell, at->line);
    else
        snprintf(text, size, at->line ? "%s, line %u" : "%s", at->file, at->line);
}

__attribute__((noreturn, format(printf, 2, 3)))
static void failed(const struct location *at, const char *format, ...)
{
    static char message[1024];
    va_list arguments;
    size_t used;
    put_location(message, 512, at);
    used = strlen(message);
    used += (size_t)snprintf(message + used, sizeof message - used, ": ");
    va_start(arguments, format);
    vsnprintf(message + used, sizeof message - used, format, arguments);
    va_end(arguments);
    fflush(NULL); /* what the program has printed before */
    if (!report_to_launcher(message))
        dprintf(2, "%s\n", message);
    _exit(STATUS);
}

static long long number(const struct type *type, uintptr_t value)
{
    unsigned bits = 1u << (type->about >> 1);
    if (bits > 8 * sizeof value) /* value is a pointer to the number */
        return *(long long *)value;
    if (!(type->about & 1) || bits == 8 * sizeof value)
        return (long long)value;
    return (long long)(value << (8 * sizeof value - bits)) >> (8 * sizeof value - bits);
}

#define HANDLER(name, ...) \
    __attribute__((noreturn, visibility("hidden"))) void __ubsan_handle_##name(__VA_ARGS__)

struct bounds { struct location at; const struct type *array, *index; };
HANDLER(out_of_bounds_abort, struct bounds *data, uintptr_t index)
{
    failed(&data->at, "index %lld is out of bounds of %s", number(data->index, index),
           data->array->name);
}

struct typed { struct location at; const struct type *type; };
HANDLER(divrem_overflow_abort, struct typed *data, uintptr_t left, uintptr_t right)
{
    (void)left;
    if (data->type->kind == 0 && number(data->type, right) == 0)
        failed(&data->at, "division by zero");
    failed(&data->at, "the result of this division does not fit into %s", data->type->name);
}

struct access { struct location at; const struct type *type; unsigned char alignment, kind; };
HANDLER(type_mismatch_v1_abort, struct access *data, uintptr_t pointer)
{
    static const char *const does[] = {
        "load through", "store through", "reference to", "member access through", "call through",
    };
    const char *what = data->kind < 5 ? does[data->kind] : "use of";
    failed(&data->at, "%s %s pointer to %s", what, pointer ? "an invalid" : "a null",
           data->type->name);
}

/* `int a[rank]` is common, and has no elements at rank 0, which is harmless: the program continues.
 * */
__attribute__((visibility("hidden")))
void __ubsan_handle_vla_bound_not_positive(struct typed *data, uintptr_t bound)
{
    if (number(data->type, bound) != 0)
        failed(&data->at, "an array of %lld elements", number(data->type, bound));
}

HANDLER(load_invalid_value_abort, struct typed *data, uintptr_t value)
{
    failed(&data->at, "%lld is not a value of %s", number(data->type, value), data->type->name);
}

HANDLER(float_cast_overflow_abort, struct typed *data, uintptr_t value)
{
    (void)value;
    failed(&data->at, "this number does not fit into %s", data->type->name);
}

HANDLER(builtin_unreachable, struct location *at) { failed(at, "this line cannot be reached"); }

HANDLER(missing_return, struct location *at)
{
    failed(at, "the function ends without a return, and its value is used");
}

struct builtin { struct location at; unsigned char kind; };
HANDLER(invalid_builtin_abort, struct builtin *data)
{
    failed(&data->at, "__builtin_c%cz of 0 has no value", data->kind ? 'l' : 't');
}

struct given { struct location at, declared; int which; };
HANDLER(nonnull_arg_abort, struct given *data)
{
    failed(&data->at, "argument %d is a null pointer, which this function does not accept",
           data->which);
}

HANDLER(nonnull_return_v1_abort, struct given *data, struct location *at)
{
    (void)data;
    failed(at, "a null pointer is returned by a function that never returns one");
}

/* ---- AddressSanitizer: these functions exist only in programs that were built with --asan. */

#define ASAN __attribute__((weak)) extern
ASAN void __sanitizer_symbolize_pc(void *pc, const char *format, char *text, size_t size);
ASAN const char *__asan_get_report_description(void);
ASAN int __asan_get_report_access_type(void); /* 1: it writes */
ASAN size_t __asan_get_report_access_size(void);
ASAN void __sanitizer_set_report_fd(void *fd);
ASAN void __sanitizer_set_death_callback(void (*callback)(void));
ASAN char __executable_start, etext; /* the linker's: the program's code; absent in libraries */

/* Crashes are reported by libmpi, and memory that is not freed at the end is not an error here. */
const char *__asan_default_options(void)
{
    return "detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_abort=0";
}

static void *calls[128]; /* the return addresses of a thread's calls, the innermost first */
static volatile sig_atomic_t count;

static void take_calls(int signal)
{
    (void)signal;
    count = backtrace(calls, sizeof calls / sizeof calls[0]);
}

/* The innermost line of the program's own code: the access itself may be in memcpy, or in MPI. */
static int find_line(struct location *found, char *text, size_t size)
{
    static char folder[4096];
    for (int i = 0; i < count; i++) {
        char *code = (char *)calls[i] - 1, *end;
        if (code < &__executable_start || code >= &etext)
            continue;
        __sanitizer_symbolize_pc(code, "%l %s", text, size);
        uint32_t line = (uint32_t)strtoul(text, &end, 10);
        if (line == 0) /* this file has no line numbers */
            continue;
        found->line = line;
        found->file = end + strspn(end, " ");
        while (strncmp(found->file, "./", 2) == 0)
            found->file += 2;
        size_t used = getcwd(folder, sizeof folder) ? strlen(folder) : 0;
        if (used && strncmp(found->file, folder, used) == 0 && found->file[used] == '/')
            found->file += used + 1;
        return 1;
    }
    return 0;
}

/* The main thread's calls; for at most a second, since it may have blocked the signal. */
static void take_calls_of_main(void)
{
    struct sigaction action = { .sa_handler = take_calls, .sa_flags = SA_RESTART };
    count = 0;
    if (sigaction(SIGURG, &action, NULL) < 0 || tgkill(getpid(), getpid(), SIGURG) < 0)
        return;
    for (int tries = 0; count == 0 && tries < 1000; tries++)
        usleep(1000);
}

/* It is called before AddressSanitizer prints its report, and does not return. */
void __asan_on_error(void)
{
    static const struct { const char *name, *place; } places[] = {
        { "heap-buffer-overflow", "outside of what malloc has given" },
        { "heap-use-after-free", "of memory that was freed" },
        { "stack-use-after", "of a variable whose function or block has ended" },
        { "stack-", "outside of a variable" },
        { "dynamic-stack-", "outside of a variable" },
        { "global-buffer-overflow", "outside of a global variable" },
    };
    static char text[4096];
    struct location at = { "the program", 0, 0 };
    const char *name = __asan_get_report_description(), *who = "";
    size_t size = __asan_get_report_access_size();
    take_calls(0);
    if (!find_line(&at, text, sizeof text)) {
        /* A library's thread: MPI writes messages into buffers also while the program computes. */
        who = "meanwhile a library's thread ";
        take_calls_of_main();
        find_line(&at, text, sizeof text);
    }
    for (size_t i = 0; size && i < sizeof places / sizeof places[0]; i++)
        if (strncmp(name, places[i].name, strlen(places[i].name)) == 0)
            failed(&at, "%s%s %zu byte%s %s (%s)", who,
                   __asan_get_report_access_type() ? "writes" : "reads", size,
                   size == 1 ? "" : "s", places[i].place, name);
    if (strcmp(name, "double-free") == 0)
        failed(&at, "%sfrees memory that was freed (double-free)", who);
    failed(&at, "AddressSanitizer has found: %s", name);
}

/* The report is kept back until it is known that no sentence replaces it. */
static int kept = -1;

static void show_report(void)
{
    char part[4096];
    ssize_t size;
    for (off_t at = 0; (size = pread(kept, part, sizeof part, at)) > 0; at += size)
        dprintf(2, "%.*s", (int)size, part);
}

__attribute__((constructor))
static void keep_report(void)
{
    if (!__sanitizer_set_report_fd || (kept = memfd_create("report", MFD_CLOEXEC)) < 0)
        return;
    __sanitizer_set_report_fd((void *)(intptr_t)kept);
    __sanitizer_set_death_callback(show_report);
}

/* The launcher reads pipes: each printed line arrives at once, and a prompt without a newline
 * arrives before its answer is read. */
__attribute__((constructor))
static void set_up_streams(void)
{
    if (!getenv("SFM_MPI_RANK"))
        return;
    if (!isatty(1))
        setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    if (!isatty(0))
        setvbuf(stdin, NULL, _IOLBF, BUFSIZ);
}
